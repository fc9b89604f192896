"""A transcript out of the wire is checked on its way."""

from typing import Any

import msgspec
import pytest

from broker.wire.chain import receipt_text
from broker.wire.ids import Pk
from broker.wire.keys import SigningKey
from gateways.client.errors import WireFault
from gateways.client.export import check_lines, read_lines
from tests.gateways.client.test_transcript import DEAL, KEYS

CONV = DEAL[0]["envelope"]["conv"]
WIRE = SigningKey.from_seed(KEYS["wire"]["seed"])


class Wire:
    """Answers read_conv in pages of three, and receipt."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.rows = [
            {
                "n": row["n"],
                "sig": row["sig"],
                "envelope": msgspec.Raw(row["canonical"].encode()),
                "chain": row["chain"],
                "accepted_at": row["envelope"]["ts"] * 1000 + 7,
                "resubmitted": True,
            }
            for row in DEAL
        ]

    async def ask(self, tool: str, params: dict[str, Any]) -> bytes:
        self.asked.append((tool, dict(params)))
        if tool == "receipt":
            return self.receipt(params["n"])
        after = params.get("after", -1)
        page = self.rows[after + 1 : after + 4]
        more = {"next": page[-1]["n"]} if page and page[-1] is not self.rows[-1] else {}
        return msgspec.json.encode({"conv": CONV, "rows": page, **more})

    def receipt(self, n: int) -> bytes:
        row = self.rows[n]
        text = receipt_text(WIRE.pk, CONV, n, row["sig"], row["chain"], row["accepted_at"])
        return msgspec.json.encode({"receipt": msgspec.Raw(text), "sig": WIRE.sign(text)})


@pytest.mark.requirement("client.export")
async def test_an_export_has_all_rows_in_order_with_the_members_of_a_line() -> None:
    wire = Wire()
    lines = await read_lines(wire.ask, CONV, {"sig": "proof"})
    assert [list(msgspec.json.decode(line)) for line in lines] == [
        ["n", "sig", "envelope", "chain", "accepted_at"]
    ] * len(DEAL)
    assert [msgspec.json.decode(line)["n"] for line in lines] == list(range(len(DEAL)))
    assert [params.get("after") for _, params in wire.asked] == [None, 2, 5]
    assert all(params["sig"] == "proof" for _, params in wire.asked)
    verdict = check_lines(lines, CONV, ())
    assert verdict.ok
    assert set(verdict.received) == {None}


@pytest.mark.requirement("client.export")
async def test_receipts_prove_when_each_row_was_received() -> None:
    lines = await read_lines(Wire().ask, CONV, {}, receipts=True)
    verdict = check_lines(lines, CONV, (Pk(WIRE.pk),))
    assert list(verdict.received) == [row["envelope"]["ts"] * 1000 + 7 for row in DEAL]


async def test_a_transcript_that_breaks_is_not_exported() -> None:
    wire = Wire()
    wire.rows[3]["sig"] = wire.rows[2]["sig"]
    with pytest.raises(WireFault, match="breaks at n = 3"):
        check_lines(await read_lines(wire.ask, CONV, {}), CONV, ())


async def test_another_conversation_in_its_place_is_found_out() -> None:
    lines = await read_lines(Wire().ask, CONV, {})
    with pytest.raises(WireFault, match="in place of"):
        check_lines(lines, "ff" * 8, ())


@pytest.mark.parametrize("answer", [b"[]", b'{"rows":7}', b"no"])
async def test_an_answer_that_can_not_be_read_is_a_fault(answer: bytes) -> None:
    async def ask(tool: str, params: dict[str, Any]) -> bytes:
        return answer

    with pytest.raises(WireFault, match="can't be read"):
        await read_lines(ask, CONV, {})

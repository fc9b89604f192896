"""A transcript out of the wire, checked on its way: JSON Lines that stand for themselves.

1. A row is written as the wire gave it; one that can't be true stops the export (WireFault).
2. Receipts are the wire's signatures, asked for one by one; a verifier says "received at" by them.

Source: wire.md, Tools of the wire (Export; receipt).
"""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from broker.wire.chain import Verdict, verify_transcript
from broker.wire.ids import Pk
from gateways.client.errors import WireFault

Ask = Callable[[str, dict[str, Any]], Awaitable[bytes]]
"""Asks a tool: name and params in, the result's JSON text out."""


class _Page(msgspec.Struct):
    rows: list[dict[str, msgspec.Raw]]
    next: int | None = None


class _Receipt(msgspec.Struct):
    receipt: dict[str, Any]
    sig: str


async def read_lines(ask: Ask, conv: str, proof: dict[str, Any], *, receipts: bool = False) -> list[bytes]:
    """The conversation's export lines, in order. `proof`: params that show a party's right to read.

    Raises Refused (unknown_conv), WireFault, Disconnected. Cancelling is safe: it only reads.
    """
    lines: list[bytes] = []
    params: dict[str, Any] = {"conv": conv, **proof}
    while True:
        page = _decode(await ask("read_conv", params), _Page)
        for row in page.rows:
            line = {
                name: row[name] for name in ("n", "sig", "envelope", "chain", "accepted_at") if name in row
            }
            if receipts:
                line["receipt"] = msgspec.Raw(await _receipt(ask, conv, len(lines), proof))
            lines.append(msgspec.json.encode(line))
        if page.next is None or not page.rows:
            return lines
        params["after"] = page.next


async def _receipt(ask: Ask, conv: str, n: int, proof: dict[str, Any]) -> bytes:
    given = _decode(await ask("receipt", {"conv": conv, "n": n, **proof}), _Receipt)
    return msgspec.json.encode({"receipt": given.receipt, "sig": given.sig})


def check_lines(lines: list[bytes], conv: str, wires: tuple[Pk, ...]) -> Verdict:
    """The verdict over what the wire gave. Raises WireFault where it does not hold or is another conversation."""
    verdict = verify_transcript(lines, wires)
    if verdict.broken is not None:
        broken = verdict.broken
        raise WireFault(f"the wire's transcript breaks at n = {broken.n}: {broken.code}: {broken.message}")
    if verdict.conv != conv:
        raise WireFault(f"the wire gave conversation {verdict.conv} in place of {conv}")
    return verdict


def _decode(answer: bytes, kind: Any) -> Any:
    try:
        return msgspec.json.decode(answer, type=kind)
    except (msgspec.MsgspecError, RecursionError):
        raise WireFault("the wire's answer can't be read") from None

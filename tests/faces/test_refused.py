"""All of refused.json through every face over real sockets, re-made at the present time with the fault kept."""

import json
import os
import time
from typing import Any

import pytest

from broker.wire.canonical import encode
from broker.wire.envelope import bootstrap, build
from broker.wire.ids import ConvId
from broker.wire.keys import SigningKey
from tests.faces.conftest import KEYS, VECTORS, Door

REFUSED = json.loads((VECTORS / "wire" / "refused.json").read_text())
BY_PK = {key.pk: key for key in KEYS.values()}


class Remade:
    """A vector's conversation written anew: fresh conv, present ts, real signatures; and what replaced what."""

    def __init__(self, case: dict[str, Any], door: Door) -> None:
        self.old = case["so_far"]
        self.conv = os.urandom(8).hex()
        self.now = int(time.time())
        self.base = self.old["rows"][0]["envelope"]["ts"]
        self.swaps: dict[str, str] = {
            self.old["conv"]: self.conv,
            bootstrap(ConvId(self.old["conv"])): bootstrap(ConvId(self.conv)),
        }
        prev = bootstrap(ConvId(self.conv))
        for row in self.old["rows"]:
            envelope = row["envelope"]
            key = BY_PK[envelope["from"]]
            text = build(
                conv=ConvId(self.conv),
                n=row["n"],
                type=envelope["type"],
                sender=key.pk,
                to=envelope["to"],
                ts=self.now,
                prev_sig=prev,
                body=envelope["body"],
            )
            prev = key.sign(text)
            self.swaps[row["sig"]] = prev
            params = b'"from_pk":"%s","sig":"%s","envelope":%s' % (key.pk.encode(), prev.encode(), text)
            if row["n"] == 0:
                answer = door.call(
                    "send_call", b'{"to_code":"%s",%s}' % (envelope["body"]["code_to"].encode(), params)
                )
            else:
                answer = door.call(
                    "send_env", b'{"conv":"%s","n":%d,%s}' % (self.conv.encode(), row["n"], params)
                )
            assert answer.get("n") == row["n"], answer

    def text(self, old: str) -> str:
        """A submitted text with conv, signatures and times of the new conversation; all else as it was."""
        for was, now in self.swaps.items():
            old = old.replace(was, now)
        for offset in range(30):
            old = old.replace(str(self.base + offset), str(self.now))
        return old


def sign(case: dict[str, Any], text: str, remade: Remade) -> str:
    """The signature for the re-made text, with the vector's own fault kept in it."""
    name, submit = case["name"], case["submit"]
    key = BY_PK.get(submit["from_pk"], KEYS["alpha"])
    try:
        envelope = json.loads(text, parse_constant=lambda _: None)
        canonical = encode(envelope)
    except (ValueError, RecursionError):
        canonical = b"{}"  # the text itself is broken: the signature can't matter, its form does
    if case["fault"] != "the signature":
        signer = BY_PK.get(json.loads(canonical).get("from", ""), key) if canonical != b"{}" else key
        return signer.sign(canonical)
    if "stranger" in name:
        return KEYS["mallory"].sign(canonical)
    if "ASCII" in name:
        ascii_text = json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"))
        assert ascii_text.encode() != canonical
        return key.sign(ascii_text.encode())
    if "body changed" in name:
        return key.sign(encode({**json.loads(text), "body": {"another": "body"}}))
    assert "flipped" in name
    good = key.sign(canonical)
    return good[:10] + ("0" if good[10] != "0" else "1") + good[11:]


@pytest.mark.requirement("refusals.every-face")
@pytest.mark.parametrize("case", REFUSED, ids=[case["name"].replace(" ", "-") for case in REFUSED])
def test_each_refused_vector_gets_its_code_through_every_face(case: dict[str, Any], door: Door) -> None:
    remade = Remade(case, door)
    text = remade.text(case["submit"]["envelope_json"])
    sig = sign(case, text, remade)
    n = len(case["so_far"]["rows"])
    try:
        stated = json.loads(text).get("n", n)
        n = stated if type(stated) is int and stated > 0 else n
    except (ValueError, RecursionError):
        pass
    from_pk = case["submit"]["from_pk"]
    params = f'{{"conv":"{remade.conv}","n":{n},"from_pk":"{from_pk}","sig":"{sig}","envelope":{text}}}'
    before = door.call("read_conv", b'{"conv":"%s"}' % remade.conv.encode())
    answer = door.call("send_env", params.encode())
    if case["expect"] == "bad_request":
        assert answer.get("malformed") == -32700 or answer["refusal"]["code"] == "bad_request"
    else:
        assert answer["refusal"]["code"] == case["expect"], answer
        if case["expect"] == "bad_envelope":
            assert isinstance(answer["refusal"]["path"], str)
        if case["expect"] == "bad_signature":
            assert answer["refusal"]["canonical"] == encode(json.loads(text)).decode()
    assert door.call("read_conv", b'{"conv":"%s"}' % remade.conv.encode()) == before, "nothing was written"


def test_a_seed_of_the_vectors_signs_as_its_pk() -> None:
    rows = json.loads((VECTORS / "wire" / "keys.json").read_text())
    for row in rows.values():
        assert SigningKey.from_seed(row["seed"]).pk == row["pk"]

"""A whole deal over plain HTTP by two keys that sign for themselves, against any broker."""

import json
import os
import time
from typing import Any

import httpx

from broker.wire.envelope import bootstrap, build
from broker.wire.ids import ConvId
from broker.wire.keys import SigningKey
from broker.wire.statement import build_statement


class Dealer:
    """A key, its code, and what it signs."""

    def __init__(self, code: str, wire: str) -> None:
        self.code = code
        self.wire = wire
        self.key = SigningKey.generate()

    def statement(self, do: str, **members: Any) -> dict[str, Any]:
        """The params statement and sig."""
        text, sig = build_statement(
            do, self.key, self.wire, int(time.time()), os.urandom(16).hex(), **members
        )
        return {"statement": json.loads(text), "sig": sig}

    def follow(self, **members: Any) -> dict[str, Any]:
        """The right to read this key's stream, for an hour."""
        return self.statement("follow", until=int(time.time()) + 3600, **members)

    def sign(self, conv: str, n: int, type: str, to: str, prev_sig: str, body: Any) -> dict[str, Any]:
        """The params of send_env, which with to_code and without conv and n are those of send_call."""
        text = build(
            conv=ConvId(conv),
            n=n,
            type=type,
            sender=self.key.pk,
            to=to,
            ts=int(time.time()),
            prev_sig=prev_sig,
            body=body,
        )
        sig = self.key.sign(text)
        return {"conv": conv, "n": n, "from_pk": self.key.pk, "sig": sig, "envelope": json.loads(text)}


class Deal:
    """What was said in a conversation, and by whom."""

    def __init__(self, conv: str, caller: Dealer, called: Dealer, answers: list[httpx.Response]) -> None:
        self.conv = conv
        self.caller = caller
        self.called = called
        self.answers = answers


async def make_a_deal(http: httpx.AsyncClient, wire: str, codes: tuple[str, str] = ("ALFA", "BRAV")) -> Deal:
    """Two desks opened, a call, a quote, a hit, a confirmation, and the end."""
    caller, called = (Dealer(code, wire) for code in codes)
    answers = []

    async def ask(tool: str, params: dict[str, Any]) -> None:
        answer = await http.post(f"/v1/{tool}", json=params)
        assert answer.status_code == 200, answer.text
        answers.append(answer)

    for dealer in (caller, called):
        await ask("open_desk", dealer.statement("open_desk", code=dealer.code))
    conv = os.urandom(8).hex()
    opening = {"code_from": caller.code, "code_to": called.code, "wire": wire}
    params = caller.sign(conv, 0, "CALL", called.key.pk, bootstrap(ConvId(conv)), opening)
    await ask(
        "send_call", {k: v for k, v in params.items() if k not in ("conv", "n")} | {"to_code": called.code}
    )
    said = [("PICKUP", {}), ("RFQ", {"pair": "EURUSD"}), ("QUOTE", {"px": "1.0841"}), ("HIT", {}), ("CONFIRM", {}),
            ("END", {"reason": "done"})]  # fmt: skip
    for n, (type, body) in enumerate(said, 1):
        sender, to = (called, caller) if n % 2 else (caller, called)
        params = sender.sign(conv, n, type, to.key.pk, params["sig"], body)
        await ask("send_env", params)
    return Deal(conv, caller, called, answers)

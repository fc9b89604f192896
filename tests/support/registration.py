"""Agents that register themselves, operators that make them: as tests need them."""

import json
from typing import Any

import msgspec
import trio

from broker.app import Caller, Ended, Reader
from broker.wire.jwk import jwk_of
from broker.wire.keys import SigningKey
from broker.wire.refusals import Refusal
from tests.support.broker import STRANGER, Bench, Party

OPERATOR = Caller(operator=True)


def jwk(key: SigningKey) -> dict[str, Any]:
    """A key's public half as a JWK."""
    shown: dict[str, Any] = msgspec.to_builtins(jwk_of(key.pk))
    return shown


def request(bench: Bench, name: str, key: SigningKey, /, **changes: Any) -> dict[str, Any]:
    """What POST /agents/register takes; `changes` stand in for its members."""
    proof = Party("", key).statement("register_agent", bench.broker.pk, bench.ts, name=name)
    return {"name": name, "public_jwk": jwk(key), "proof": proof, **changes}


async def send(bench: Bench, params: dict[str, Any], caller: Caller = STRANGER) -> Any:
    """Send it as the door does: plain JSON values, or the Refusal."""
    answer = await bench.broker.signin(caller, "register_agent", json.dumps(params).encode())
    return answer if isinstance(answer, Refusal) else json.loads(msgspec.json.encode(answer))


async def register(bench: Bench, name: str, key: SigningKey | None = None) -> dict[str, Any]:
    """An agent that registered itself, with its claim code."""
    answer = await send(bench, request(bench, name, key or SigningKey.generate()), Caller())
    assert not isinstance(answer, Refusal), answer
    made: dict[str, Any] = answer
    return made


async def how_it_ends(reader: Reader) -> str:
    """The code with which a stream ends, within a second."""
    with trio.fail_after(1):
        while True:
            try:
                await reader.receive()
            except Ended as end:
                return end.refusal.code

"""A broker with two desks and a ringing call, the same each time, so that what is signed for it can be a seed."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from broker.wire.envelope import bootstrap
from broker.wire.ids import ConvId
from broker.wire.keys import SigningKey
from broker.wire.refusals import Refusal
from tests.support.broker import START_MS, Bench, Party, open_bench

WIRE_KEY = SigningKey.from_seed("07" * 32)
CONV = "a1b2c3d4e5f6a7b8"
TS = START_MS // 1000
ALFA = Party("ALFA", SigningKey.from_seed("01" * 32))
NEXT = SigningKey.from_seed("03" * 32)
BRAV = Party("BRAV", SigningKey.from_seed("02" * 32))


def _line() -> list[dict[str, Any]]:
    """Params of send_env: a whole deal, BRAV having dialled."""
    steps = []
    first = BRAV.envelope(
        CONV, 0, "CALL", ALFA.pk, TS, bootstrap(ConvId(CONV)),
        {"code_from": "BRAV", "code_to": "ALFA", "wire": WIRE_KEY.pk},
    )  # fmt: skip
    steps.append(first)
    for n, kind in enumerate(("PICKUP", "RFQ", "QUOTE", "HIT", "CONFIRM", "CONFIRM", "END"), start=1):
        sender, other = (ALFA, BRAV) if n % 2 else (BRAV, ALFA)
        steps.append(
            sender.envelope(CONV, n, kind, other.pk, TS, steps[-1]["sig"], {"qty": 3, "px": "101.25"})
        )
    return steps


LINE = _line()
CALL = {**{name: LINE[0][name] for name in ("from_pk", "sig", "envelope")}, "to_code": "ALFA"}
FOLLOW = ALFA.statement("follow", WIRE_KEY.pk, TS, "0b" * 16, code="ALFA", until=TS + 3600)
SCREEN = ALFA.statement(
    "screen_desk", WIRE_KEY.pk, TS, "0c" * 16, code="ALFA", allow=[], deny=[BRAV.pk], mode="all"
)
MOVE = ALFA.statement("move_desk", WIRE_KEY.pk, TS, "0d" * 16, code="ALFA", new_pk=NEXT.pk)
_OPENED = [
    party.statement("open_desk", WIRE_KEY.pk, TS, f"{at:032x}", code=party.code)
    for at, party in enumerate((ALFA, BRAV))
]


@asynccontextmanager
async def furnished() -> AsyncIterator[Bench]:
    """Both desks opened, BRAV calling ALFA."""
    async with open_bench(key=WIRE_KEY) as bench:
        for name, params in (("open_desk", _OPENED[0]), ("open_desk", _OPENED[1]), ("send_call", CALL)):
            answer = await bench.call(name, **params)
            assert not isinstance(answer, Refusal), answer
        yield bench

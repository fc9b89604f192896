"""Owners in tests: hashing that costs nothing, and verbs of the sign-in."""

import json
from typing import Any

import msgspec

from broker.app import Caller
from broker.config import Owners
from broker.wire.refusals import Refusal
from tests.support.broker import ANYONE, Bench

CHEAP = Owners(sign_up="open", argon2_passes=1, argon2_memory_kib=8)
"""Settings for tests: the smallest hash that there is. No configuration takes them."""
PASSWORD = "correct horse battery"


async def signin(bench: Bench, name: str, caller: Caller = ANYONE, **params: Any) -> Any:
    """Call a verb as a page would; the result as plain JSON values, or the Refusal. None: the param stays away."""
    given = {key: value for key, value in params.items() if value is not None}
    answer = await bench.broker.signin(caller, name, json.dumps(given).encode())
    return answer if isinstance(answer, Refusal) else json.loads(msgspec.json.encode(answer))


async def new_owner(bench: Bench) -> str:
    """The id of an owner of the broker's, whose settings are CHEAP."""
    email = f"{bench.broker._services.new_id('')}@x.example"
    made: str = (await signin(bench, "sign_up", email=email, password=PASSWORD))["owner_id"]
    return made

"""A client that signs in to a broker of the test's own, verb by verb, without any door."""

import base64
import hashlib
import json
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import msgspec

from broker.app import Caller
from broker.store.port import Put, Unit
from broker.wire.refusals import Refusal
from tests.support.broker import ANYONE, Bench

ISSUER = "https://turret.example"
RESOURCE = f"{ISSUER}/mcp"
REDIRECT = "http://127.0.0.1:3000/back"
VERIFIER = "v" * 43
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()
STATE = "a state"


async def new_owner(bench: Bench) -> str:
    """An owner in the store, who signed up without a page."""
    owner_id = bench.broker._services.new_id("ow_")
    row = {"owner_id": owner_id, "email": f"{owner_id}@example.org", "password": "", "created_at": 1}
    await bench.store.commit(Unit(puts=(Put("owner", owner_id, 0, json.dumps(row).encode()),)))
    return owner_id


async def signin(bench: Bench, name: str, caller: Caller = ANYONE, **params: Any) -> Any:
    """Call a verb as a page or door would; the result as plain JSON values, or the Refusal."""
    given = {key: value for key, value in params.items() if value is not None}
    answer = await bench.broker.signin(caller, name, json.dumps(given).encode())
    return answer if isinstance(answer, Refusal) else json.loads(msgspec.json.encode(answer))


async def register(bench: Bench, caller: Caller = ANYONE, **metadata: Any) -> Any:
    """A public client with one redirect, if `metadata` says nothing else."""
    given = {
        "client_name": "An app",
        "redirect_uris": [REDIRECT],
        "token_endpoint_auth_method": "none",
        **metadata,
    }
    return await signin(bench, "register_client", caller, metadata=given)


async def begin(bench: Bench, client_id: str, caller: Caller = ANYONE, **changes: Any) -> Any:
    """Begin a sign-in for messages and channels."""
    params = {
        "client_id": client_id,
        "issuer": ISSUER,
        "redirect_uri": REDIRECT,
        "state": STATE,
        "challenge": CHALLENGE,
        "scopes": ["message", "channel"],
        "resource": RESOURCE,
        **changes,
    }
    return await signin(bench, "begin_authorization", caller, **params)


def answer_in(redirect: str) -> dict[str, str]:
    """What a redirect tells the client."""
    return dict(parse_qsl(urlsplit(redirect).query, strict_parsing=True))


class SignedIn:
    """A client with an owner's consent: its code, not yet redeemed."""

    def __init__(self, client_id: str, owner_id: str, code: str) -> None:
        self.client_id = client_id
        self.owner_id = owner_id
        self.code = code

    def redemption(self, **changes: Any) -> dict[str, Any]:
        """The params of redeem_code."""
        params = {
            "client_id": self.client_id,
            "code": self.code,
            "redirect_uri": REDIRECT,
            "verifier": VERIFIER,
            "resource": RESOURCE,
        }
        return {**params, **changes}


async def consent(bench: Bench, owner_id: str, subject: str | None = None, **changes: Any) -> SignedIn:
    """An owner consents to a new client, for itself or for `subject`."""
    client_id = changes.pop("client_id", None) or (await register(bench))["client_id"]
    begun = await begin(bench, client_id, **changes)
    decided = await signin(
        bench, "decide_authorization", ask=begun["ask"], owner_id=owner_id, subject=subject, allow=True
    )
    return SignedIn(client_id, owner_id, answer_in(decided["redirect"])["code"])

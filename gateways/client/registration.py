"""An agent that registers itself: a name, its key, and the key's word for it (network.md, Sign-in).

1. What comes back, id and claim code, is kept in a file that its owner alone can read, before anybody is told.
2. The request is its own idempotency key: until it is answered the identical bytes are sent again.
"""

from pathlib import Path
from typing import Final

import httpx
import msgspec
import trio

from broker.wire.jwk import jwk_of
from broker.wire.refusals import refuse
from gateways.client.answers import read
from gateways.client.clockwork import Backoff
from gateways.client.errors import Disconnected, Refused, WireFault
from gateways.client.issuer import http_origin, retry_after_s
from gateways.client.link import PASSING
from gateways.client.reasons import reason_of
from gateways.client.signer import Signer
from gateways.client.socket import read_refusal
from gateways.http_client import Body
from gateways.keyfile import KeyFileError, write_private

PATH: Final = "/agents/register"
LONG_S: Final = 60.0
"""A wait that the server asks for and that a person should know of, seconds."""


class Identity(msgspec.Struct, frozen=True):
    """Who an agent is at a broker, as its file has it. `claim_code` is a secret: whoever enters it owns the agent."""

    agent_id: str
    name: str
    pk: str
    wire: str
    claim_code: str | None = None
    expires_at: int | None = None
    """Unix milliseconds; unclaimed until then, it is gone."""

    def __repr__(self) -> str:
        return f"Identity({self.agent_id}, {self.name!r})"


def identity_path(key: Path) -> Path:
    """Where the agent of a key file is kept: beside it, with .agent behind its name."""
    return key.with_name(f"{key.name}.agent")


def load_identity(path: Path, pk: str) -> Identity | None:
    """What a file says, or None where there is none. Raises KeyFileError for nonsense and for another key's."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Identity)
    except FileNotFoundError:
        return None
    except OSError as fault:
        raise KeyFileError(f"{path}: {fault.strerror}") from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise KeyFileError(f"{path} is no agent's file") from None
    if found.pk != pk:
        raise KeyFileError(f"{path} is the agent of another key")
    return found


def save_identity(path: Path, identity: Identity) -> None:
    """Write the file, mode 0600; the request that led to it is done. Raises KeyFileError."""
    try:
        write_private(path, msgspec.json.format(msgspec.json.encode(identity), indent=2) + b"\n")
    except OSError as fault:
        raise KeyFileError(f"{path}: {fault.strerror}") from None
    _keep(asked_path(path), None)


def asked_path(path: Path) -> Path:
    """Where a registration is kept that was not answered: beside the agent's file."""
    return path.with_name(f"{path.name}.asked")


async def register(
    http: httpx.AsyncClient,
    url: str,
    signer: Signer,
    name: str,
    backoff: Backoff,
    asked: Path | None = None,
) -> Identity:
    """Register, until it is answered. Raises Refused (already_exists, bad_request, …), WireFault, KeyFileError.

    After cancelling the outcome is unknown; with `asked`, a file in which the request is kept until it is answered, the
    next call, also of another process, asks for the same again, while the broker still knows it (some minutes). A
    clock of ours that is wrong is put right by the refusal, once.
    """
    request = _kept(asked, name) or _request(signer, name)
    for first in (True, False):
        _keep(asked, request)
        try:
            answer = await _settle(http, http_origin(url) + PATH, request, backoff)
        except Refused as no:
            _keep(asked, None)
            wire_ts = no.refusal.detail.get("wire_ts")
            if no.code != "bad_statement" or not isinstance(wire_ts, int) or not first:
                raise
            signer.clock.correct(wire_ts * 1000 + 500)
            request = _request(signer, name)
        else:
            return read({**answer, "pk": signer.pk, "wire": signer.wire}, Identity)
    raise AssertionError("the second refusal is raised")


def _request(signer: Signer, name: str) -> bytes:
    proof = msgspec.Raw(signer.statement("register_agent", name=name))
    return msgspec.json.encode({"name": name, "public_jwk": jwk_of(signer.pk), "proof": proof})


def _kept(path: Path | None, name: str) -> bytes | None:
    """A request for this name that was not answered."""
    try:
        text = path.read_bytes() if path is not None else b""
        return text if msgspec.json.decode(text, type=_Named).name == name else None
    except (OSError, msgspec.MsgspecError, RecursionError):
        return None


def _keep(path: Path | None, request: bytes | None) -> None:
    """Keep a request until it is answered; None: it is."""
    if path is None:
        return
    try:
        if request is None:
            path.unlink(missing_ok=True)
        else:
            write_private(path, request)
    except OSError as fault:
        raise KeyFileError(f"{path}: {fault.strerror}") from None


class _Named(msgspec.Struct):
    name: str


async def _settle(http: httpx.AsyncClient, url: str, request: bytes, backoff: Backoff) -> dict[str, object]:
    while True:
        try:
            return await _post(http, url, request)
        except Disconnected as lost:
            wait = backoff.next_s(lost.retry_after_s)
        except Refused as no:
            if no.code not in PASSING or (no.retry_after_s or 0) > LONG_S:
                raise
            wait = backoff.next_s(no.retry_after_s)
        await trio.sleep(wait)


async def _post(http: httpx.AsyncClient, url: str, body: bytes) -> dict[str, object]:
    request = http.build_request("POST", url, content=body, headers={"Content-Type": "application/json"})
    request.stream = Body(body)
    try:
        answer = await http.send(request)
    except httpx.HTTPError as fault:
        raise Disconnected(f"no answer from {url}: {reason_of(fault)}") from None
    try:
        found = msgspec.json.decode(answer.content, type=dict[str, object])
    except (msgspec.MsgspecError, RecursionError):
        found = {}
    if (refusal := read_refusal(found.get("refusal"))) is not None:
        raise Refused(refusal)
    if answer.status_code in (403, 404, 405):
        raise Refused(refuse("not_found", f"agents can't register themselves at {url}"))
    if answer.status_code not in (200, 201):
        raise Disconnected(f"HTTP {answer.status_code} from {url}", retry_after_s(answer))
    if "agent_id" not in found:
        raise WireFault(f"what {url} answers can't be read")
    return found

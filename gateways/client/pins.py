"""Which wire answers at an address: pinned at first use, like an ssh host key.

1. A statement is signed only for a wire that was given or pinned, never for one merely read from a greeting.
2. A pinned wire that shows another key is a fault, not an update: a person removes the line.
3. The file holds one `address pk` a line; what else stands in it is left alone.

The first pk comes from /.well-known/turret.json of the address itself, so that over https the certificate
vouches for it. Source: wire.md, Signed statements.
"""

import os
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import httpx
import msgspec

from broker.wire.ids import PK, Pk
from gateways.client.errors import Disconnected, WireFault
from gateways.client.reasons import reason_of

WELL_KNOWN: Final = "/.well-known/turret.json"
_PORTS: Final = {"ws": 80, "http": 80, "wss": 443, "https": 443}


def known_wires_path() -> Path:
    """The file of the person who runs this: $XDG_CONFIG_HOME or ~/.config, turret/known_wires."""
    base = os.environ.get("XDG_CONFIG_HOME")
    return (Path(base) if base else Path.home() / ".config") / "turret" / "known_wires"


def address(url: str) -> str:
    """What a pin is filed under: host and port, the scheme's own port where the URL names none."""
    parts = urlsplit(url)
    port = parts.port or _PORTS.get(parts.scheme)
    if not parts.hostname or port is None:
        raise ValueError(f"{url!r} is not a ws, wss, http or https URL")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{host}:{port}"


class Pins:
    """The file of pins. Reading it is quick and done at every use, so that processes agree."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def get(self, url: str) -> Pk | None:
        """The wire pinned for this URL's address."""
        wanted = address(url)
        try:
            lines = self._path.read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return None
        for line in lines:
            match line.split():
                case [where, pk] if where == wanted and PK.fullmatch(pk):
                    return Pk(pk)
        return None

    def add(self, url: str, wire: Pk) -> None:
        """Pin. Raises WireFault where another wire is pinned already."""
        pinned = self.get(url)
        if pinned == wire:
            return
        if pinned is not None:
            raise WireFault(self._changed(url, pinned, wire))
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with open(fd, "ab") as file:
            file.write(f"{address(url)} {wire}\n".encode())

    def _changed(self, url: str, pinned: Pk, shown: Pk) -> str:
        return (
            f"the wire at {address(url)} shows the key {shown}, but {pinned} is pinned; "
            f"if its operator has changed the key, remove the line from {self._path}"
        )


def another_wire(shown: object, wire: str) -> WireFault:
    """What is raised where the other end shows another key than the one that was given or pinned."""
    return WireFault(
        f"the wire shows the key {shown}, not {wire}, which was given or met first at this address; if it is another "
        f"broker by right, give its key (--wire, wire=), or take the old line out of {known_wires_path()}"
    )


async def read_well_known(url: str, client: httpx.AsyncClient) -> dict[str, Any]:
    """The wire's description, from the origin of `url`. Raises Disconnected, or WireFault for nonsense.

    Cancelling is safe: it only reads.
    """
    parts = urlsplit(url)
    scheme = {"ws": "http", "wss": "https"}.get(parts.scheme, parts.scheme)
    try:
        answer = await client.get(f"{scheme}://{parts.netloc}{WELL_KNOWN}")
    except httpx.HTTPError as fault:
        raise Disconnected(f"cannot read {WELL_KNOWN} of {parts.netloc}: {reason_of(fault)}") from None
    if answer.status_code != 200:
        raise Disconnected(
            f"{parts.netloc} has no {WELL_KNOWN} (HTTP {answer.status_code}): is that a broker?"
        )
    try:
        found = msgspec.json.decode(answer.content, type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError):
        raise WireFault(f"{WELL_KNOWN} of {parts.netloc} is not a JSON object") from None
    if not PK.fullmatch(str(found.get("wire"))):
        raise WireFault(f"{WELL_KNOWN} of {parts.netloc} names no wire")
    return found


async def pinned_wire(url: str, pins: Pins, client: httpx.AsyncClient) -> Pk:
    """The wire at this URL: the pinned one, else the published one, which is pinned now.

    The dealing port publishes nothing: there a wire must be given or pinned already. The public address
    names the dealing port, so that whoever pinned the one has pinned the other.
    """
    if (known := pins.get(url)) is not None:
        return known
    try:
        found = await read_well_known(url, client)
    except Disconnected as why:
        if urlsplit(url).scheme in ("http", "https"):
            raise
        raise Disconnected(f"{why}; give the wire's pk, or connect to its http(s) address once") from None
    wire = Pk(found["wire"])
    pins.add(url, wire)
    if isinstance(dealing := found.get("dealing"), str) and _same_host(url, dealing):
        pins.add(dealing, wire)
    return wire


def _same_host(url: str, other: str) -> bool:
    """One host may not pin a wire for another."""
    try:
        return address(url).rpartition(":")[0] == address(other).rpartition(":")[0]
    except ValueError:
        return False

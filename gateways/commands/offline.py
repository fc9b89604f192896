"""Commands that need no broker: keygen, verify, canonicalize."""

import hashlib
import sys
from pathlib import Path
from typing import Final

import click

from broker.wire import canonical
from broker.wire.envelope import read_envelope
from broker.wire.ids import PK
from broker.wire.keys import SigningKey
from broker.wire.refusals import Refusal
from gateways.client.errors import Refused
from gateways.client.verify import as_json, report, verify_file
from gateways.commands.common import Failure, Options, common
from gateways.keyfile import save_key

_EVENTS: Final = b'{"events":['
_ARENA: Final = "a session of the arena is checked by `turret arena verify`"


@click.command()
@click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), default=Path("turret.key"), show_default=True
)
@common
def keygen(options: Options, out: Path) -> None:
    """Make a key and print its public key.

    The file gets mode 0600 and is never overwritten.

    \b
    Example:
      turret keygen --out alfa.key
    """
    key = SigningKey.generate()
    save_key(out, key)
    options.show({"pk": key.pk, "file": str(out)}, key.pk)


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--wire", "wires", metavar="PK", multiple=True, help="A wire to trust; may be repeated.")
@click.option("--json", "as_text", is_flag=True, default=None, help="The verdict as JSON.")
@click.pass_context
def verify(context: click.Context, file: Path, wires: tuple[str, ...], as_text: bool | None) -> None:
    """Verify an exported transcript, offline. Exits 1 and names the first broken step.

    Signatures, chain, parties and turns are checked from the file alone; an END or a receipt of the wire needs
    the wire's key, from the CALL or from --wire.

    \b
    Example:
      turret verify deal.jsonl
    """
    given = context.find_object(dict) or {}
    trusted = wires or ((given["wire"],) if "wire" in given else ())
    for pk in trusted:
        if not PK.fullmatch(pk):
            raise click.UsageError("--wire takes 64 lowercase hex characters")
    verdict = verify_file(file, trusted)
    options = Options(json=bool(as_text if as_text is not None else given.get("json")))
    broken = verdict.broken
    if options.json or broken is None:
        options.show(as_json(verdict), report(verdict))
    if broken is not None:
        where = f"{file} breaks at n = {broken.n} (line {broken.line})"
        said = f"{where}: {broken.message}; {verdict.rows} envelopes before it hold"
        raise Failure(broken.code, said + ("; " + _ARENA if _is_session(file) else ""))


def _is_session(file: Path) -> bool:
    """Whether a file begins as an artifact of the arena does."""
    with file.open("rb") as opened:
        return opened.read(len(_EVENTS)) == _EVENTS


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True), default="-")
@common
def canonicalize(options: Options, file: str) -> None:
    """Print the canonical text of an envelope (or of any JSON object): the bytes to sign.

    FILE is - for standard input. What the wire would refuse of an envelope is refused here. Needs no broker;
    `turret call canonicalize` asks one what is due.

    \b
    Example:
      echo '{"b":1.0,"a":2}' | turret canonicalize
    """
    data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    text = canonical.canonicalize(data)
    if isinstance(text, Refusal):
        raise Refused(text)
    if b'"prev_sig"' in text and isinstance(read := read_envelope(data), Refusal):
        raise Refused(read)
    options.show({"canonical": text.decode(), "sha256": hashlib.sha256(text).hexdigest()}, text.decode())

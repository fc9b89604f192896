"""Commands that read: resolve, presence, read, export. A key is needed only where transcripts are private."""

from pathlib import Path
from typing import Any

import click
import msgspec

from broker.wire.envelope import read_envelope
from broker.wire.ids import Pk
from broker.wire.keys import SigningKey
from broker.wire.refusals import Refusal
from gateways.client.asking import Asker, check_wire, open_asker
from gateways.client.clockwork import WireClock
from gateways.client.connect import find_wire
from gateways.client.errors import WireFault
from gateways.client.export import check_lines, read_lines
from gateways.client.show import Names, line, plain_json
from gateways.client.signer import Signer
from gateways.commands.common import Options, common, echo_error, is_terminal, run
from gateways.keyfile import load_key, write_private


async def ask(options: Options, tool: str, **params: Any) -> dict[str, Any]:
    """One question to the broker of the options."""
    async with open_asker(options.url) as asker:
        answer = await asker.ask(tool, params)
    return msgspec.json.decode(answer, type=dict[str, Any])


async def signer_for(options: Options, asker: Asker, key: SigningKey) -> Signer:
    """A key on the wire that is given or pinned, which the other end must show."""
    wire = await find_wire(options.url, options.wire)
    clock = WireClock()
    await check_wire(asker, wire, clock)
    return Signer(key, wire, clock)


@click.command()
@click.argument("code")
@common
def resolve(options: Options, code: str) -> None:
    """Print the public key that a desk's code stands for now.

    \b
    Example:
      turret resolve BRAV
    """
    found = run(_ask_code, options, code.upper())
    options.show(found, str(found["pk"]))


async def _ask_code(options: Options, code: str) -> dict[str, Any]:
    return await ask(options, "resolve_code", code=code)


@click.command()
@click.argument("codes", nargs=-1)
@common
def presence(options: Options, codes: tuple[str, ...]) -> None:
    """Print which desks are online now: the CODES given, or all that are.

    \b
    Example:
      turret presence ALFA BRAV
    """
    found = run(_ask_presence, options, [code.upper() for code in codes])
    lines = [f"{code}  {'online' if online else 'offline'}" for code, online in found["desks"].items()]
    options.show(found, "\n".join(lines) or "nobody is online")


async def _ask_presence(options: Options, codes: list[str]) -> dict[str, Any]:
    return await ask(options, "presence", **({"codes": codes} if codes else {}))


@click.command()
@click.argument("conv")
@common
def read(options: Options, conv: str) -> None:
    """Print a conversation, one envelope a line.

    \b
    Example:
      turret read a1b2c3d4e5f6a7b8
    """
    lines = run(_read, options, conv, False)
    if options.json:
        for each in lines:
            click.echo(plain_json(each))
        return
    names = Names()
    for each in lines:
        row = msgspec.json.decode(each, type=dict[str, msgspec.Raw])
        envelope = read_envelope(bytes(row["envelope"]))
        if isinstance(envelope, Refusal):
            raise WireFault(f"the wire gave an envelope that breaks its rules: {envelope.message}")
        at = msgspec.json.decode(row["accepted_at"]) if "accepted_at" in row else None
        click.echo(line(envelope, at, names, colour=is_terminal()))


@click.command()
@click.argument("conv")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="A file; else standard output.")
@click.option("--receipts", is_flag=True, help="With the wire's signed receipt of each envelope.")
@common
def export(options: Options, conv: str, out: Path | None, receipts: bool) -> None:
    """Export a conversation as JSON Lines, checked on its way: what `turret verify` takes.

    \b
    Example:
      turret export a1b2c3d4e5f6a7b8 --out deal.jsonl --receipts
    """
    lines = run(_read, options, conv, receipts)
    text = b"".join(each + b"\n" for each in lines)
    if out is None:
        click.echo(text, nl=False)
        return
    write_private(out, text)
    if options.json:
        options.show({"conv": conv, "rows": len(lines), "file": str(out)})
    else:
        echo_error(f"{len(lines)} envelopes in {out}")


async def _read(options: Options, conv: str, receipts: bool) -> list[bytes]:
    key = load_key(options.key) if options.key is not None else None
    async with open_asker(options.url) as asker:
        proof = (await signer_for(options, asker, key)).follow() if key is not None else {}
        lines = await read_lines(asker.ask, conv, proof, receipts=receipts)
        info = msgspec.json.decode(await asker.ask("wire_info", {}), type=dict[str, Any])
    check_lines(lines, conv, wire_keys(info))
    return lines


def wire_keys(info: dict[str, Any]) -> tuple[Pk, ...]:
    """All keys that the wire says were its own: an END in an old conversation may be by an old one."""
    listed = info.get("wire_keys")
    rows = listed if isinstance(listed, list) else []
    pks = [row.get("pk") for row in rows if isinstance(row, dict)] + [info.get("wire")]
    return tuple(dict.fromkeys(Pk(pk) for pk in pks if isinstance(pk, str)))

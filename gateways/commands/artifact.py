"""`turret artifact`: the bytes of an artifact, checked by its ref."""

import sys
from pathlib import Path

import click

from gateways.client.artifacts import fetch_artifact, read_ref
from gateways.commands.common import Options, common, echo_error, run
from gateways.keyfile import write_private


@click.command()
@click.argument("ref")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="A file; else standard output.")
@common
def artifact(options: Options, ref: str, out: Path | None) -> None:
    """Fetch a published artifact, by its REF or its address (kestrel://artifact/…), from any broker that has it.

    Its hash is compared with the ref before anything is written. What it says is checked by `turret arena verify
    FILE`, of a session of the arena, and by `turret grade FILE`, of a trial.

    \b
    Example:
      turret artifact 5f0c…e2 --out session.json
    """
    name = read_ref(ref)
    content = run(_fetch, options, name)
    if out is None:
        sys.stdout.buffer.write(content)  # these bytes, and no line end
        sys.stdout.buffer.flush()
        return
    write_private(out, content)
    if options.json:
        options.show({"ref": name, "bytes": len(content), "file": str(out)})
    else:
        echo_error(f"{len(content)} bytes in {out}")


async def _fetch(options: Options, ref: str) -> bytes:
    return await fetch_artifact(options.url, ref)

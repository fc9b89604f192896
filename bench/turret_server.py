"""`turret serve` with one more tool, `echo`: the registry, the dispatcher and the doors are the product's own.

Run as `python -m bench.turret_server serve …`, with the options of `turret serve`. No real tool has a like on the
yardstick's side; this one answers what bench/sdk_server.py answers.
"""

import msgspec

from broker.tools.context import Context
from broker.tools.registry import tool
from gateways import cli


class Said(msgspec.Struct, frozen=True):
    """What was said, under the name that the official SDK gives to a text."""

    result: str


@tool(face="wire", title="Echo", read_only=True)
async def echo(context: Context, text: str) -> Said:
    """Give the text back."""
    return Said(text)


if __name__ == "__main__":
    cli.main()

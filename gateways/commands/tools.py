"""Every tool of the registry as a command: `turret call TOOL --params JSON`, and `turret resolve-code --code …`.

1. Options come from the tool's own schema; nothing is listed here by hand.
2. Where a tool takes a statement, it is signed with --key for the pinned wire, unless --params brings one, or a token
   says who reads.
3. A tool of the network is called by a token (credentials.py).
"""

import difflib
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from broker.app import AREAS, Tool
from broker.tools.registry import collect
from broker.wire.statement import TABLE
from gateways.client.asking import check_wire, open_asker
from gateways.client.clockwork import WireClock
from gateways.client.signer import Signer
from gateways.commands.common import Failure, Options, common, common_options, run
from gateways.commands.credentials import (
    Credentials,
    credential_options,
    fetch_token,
    of_the_key,
    take_credentials,
)
from gateways.commands.params import option_name, option_of, read_value, take_params
from gateways.commands.reading import signer_for
from gateways.keyfile import load_key

_SIGNED: Final = ("statement", "sig", "new_sig")
_WAY_IN: Final = (
    "this needs a token: give --key FILE of an agent (turret agent-register makes one), with --agent AGENT_ID where no "
    "FILE.agent is beside it, or --token-file FILE"
)
_STATEMENT_MEMBERS: Final[dict[str, dict[str, Any]]] = {
    "allow": {"type": "array", "items": {"type": "string"}, "description": "a key that always rings"},
    "deny": {"type": "array", "items": {"type": "string"}, "description": "a key that never rings"},
}


def tools() -> Mapping[str, Tool]:
    """The published tools; importing the areas has filled the registry."""
    assert AREAS
    return collect()


def command_for(tool: Tool) -> click.Command:
    """The sub-command of one tool."""

    @common
    def callback(options: Options, **values: Any) -> None:
        credentials = take_credentials(values)
        new_key: Path | None = values.pop("new_key", None)
        options.show(run(_ask, options, tool, take_params(_options(tool), values), new_key, credentials))

    params: list[click.Parameter] = [
        option_of(name, schema, name in _required(tool)) for name, schema in _options(tool).items()
    ]
    if "new_sig" in tool.params:
        kind = click.Path(path_type=Path, dir_okay=False)
        params.append(click.Option(["--new-key"], type=kind, required=True, help="The new key's file."))
    params += [*credential_options(), *common_options(environment=False)]
    name = tool.name.replace("_", "-")
    return click.Command(name, params=params, callback=callback, help=_help(tool, name))


@click.command()
@click.argument("tool")
@click.option(
    "--params", default="{}", metavar="JSON", help="The params as a JSON object; @FILE or - for stdin."
)
@common
def call(options: Options, tool: str, params: str, **values: Any) -> None:
    """Call any tool by its name. With --key, a statement that it needs is signed; a token says whose agent you are.

    \b
    Example:
      turret call resolve_code --params '{"code":"ALFA"}'
    """
    known = tools().get(tool.replace("-", "_"))
    if known is None:
        near = difflib.get_close_matches(tool.replace("-", "_"), tools(), 2)
        hint = f"did you mean {' or '.join(near)}?" if near else "turret --help lists them"
        raise click.UsageError(f"there is no tool {tool}; {hint}")
    credentials = take_credentials(values)
    options.show(run(_ask, options, known, read_value({"type": "object"}, params), None, credentials))


call.params += credential_options()


async def _ask(
    options: Options, tool: Tool, params: dict[str, Any], new_key: Path | None, credentials: Credentials
) -> Any:
    if tool.scope is not None and not credentials.given:
        credentials = of_the_key(options)
        if not credentials.given:
            raise Failure("unauthenticated", _WAY_IN)
    signs = "statement" in tool.params and "statement" not in params
    if credentials.given and tool.name not in TABLE:  # a reader's statement; the token says who reads
        signs = False
    key = load_key(options.key) if signs and options.key is not None else None
    token = await fetch_token(options, credentials, tool.scope)
    async with open_asker(options.url) as asker:
        if key is not None:
            params = _signed(await signer_for(options, asker, key), tool, params, new_key)
        elif options.wire is not None:  # no token goes to another broker than was named
            await check_wire(asker, options.wire, WireClock())
        if token is not None:
            await asker.bear(token)
        answer = await asker.ask(tool.name, params)
    return msgspec.json.decode(answer)


def _signed(signer: Signer, tool: Tool, params: dict[str, Any], new_key: Path | None) -> dict[str, Any]:
    """The params with the statement that the tool takes: its own, or a read capability."""
    if tool.name not in TABLE:
        return {**params, **signer.follow()}
    members: dict[str, Any] = {name: [] for name in TABLE[tool.name] if name in _STATEMENT_MEMBERS}
    members |= {name: _plain(params[name]) for name in TABLE[tool.name] if name in params}
    left = {name: value for name, value in params.items() if name not in members}
    if new_key is None:
        text, sig = signer.sign(tool.name, **members)
        return {**left, "statement": msgspec.Raw(text), "sig": sig}
    successor = load_key(new_key)
    text, sig = signer.sign(tool.name, nonce=secrets.token_hex(16), **{**members, "new_pk": successor.pk})
    return {**left, "statement": msgspec.Raw(text), "sig": sig, "new_sig": successor.sign(text)}


def _plain(value: Any) -> Any:
    return msgspec.json.decode(value) if isinstance(value, msgspec.Raw) else value


def _options(tool: Tool) -> dict[str, dict[str, Any]]:
    """The options of a tool: its params, with a statement's members in the place of the statement."""
    properties: dict[str, dict[str, Any]] = dict(tool.input_schema["properties"])
    signed = "statement" in tool.params
    shown = {name: schema for name, schema in properties.items() if not (signed and name in _SIGNED)}
    if signed and tool.name in TABLE:
        for name, form in TABLE[tool.name].items():
            if not (name == "new_pk" and "new_sig" in tool.params):
                shown[name] = _STATEMENT_MEMBERS.get(name, {"type": "string", "description": form.text})
    return shown


def _required(tool: Tool) -> list[str]:
    """The options that must be given: those that the tool, or its statement, can't do without."""
    needed = set(tool.input_schema["required"])
    needed |= {name for name, form in TABLE.get(tool.name, {}).items() if not form.optional}
    return [name for name in _options(tool) if name in needed and name not in _STATEMENT_MEMBERS]


def _help(tool: Tool, name: str) -> str:
    needs = "".join(f" {option_name(name)} …" for name in _required(tool))
    key = " --key FILE" if "statement" in tool.params else ""
    key += " --new-key FILE" if "new_sig" in tool.params else ""
    key += " --key FILE" if tool.scope is not None and not key else ""
    return f"{tool.description}\n\n\b\nExample:\n  turret {name}{needs}{key}"

"""`turret admin <tool>`: every tool of the operators as a command, called on the operators' port.

1. Options come from the tools' own schemas; nothing is listed here by hand.
2. The token comes from a file or the environment, never from the command line, which every program here can read.
"""

import os
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from broker.app import AREAS, Tool
from broker.tools.registry import collect
from gateways.client.errors import Disconnected, Refused
from gateways.client.link import ANSWER_S
from gateways.client.mcp_link import ToolCaller
from gateways.client.signer import join_params
from gateways.commands.common import NO_CONNECTION, USAGE, Failure, Options, run
from gateways.commands.credentials import check_way, read_token
from gateways.commands.listing import by_topic, command_name, no_such_command
from gateways.commands.params import option_name, option_of, take_params
from gateways.configure import OPERATOR, ConfigError, ServeOptions, is_loopback, load, split_bind

DEFAULT_URL: Final = f"http://{ServeOptions().operator_bind}"
LONG_S: Final = 300.0
"""Seconds for which an answer is waited for of a tool that may last, as one that reads all of a tape does."""
_NO_TOKEN: Final = (
    f"this needs the operators' token: --operator-token-file FILE, or {OPERATOR} (turret operator-token makes one, and "
    "turret serve takes it the same way)"
)
_OTHER: Final = ", and was shown the token: ready.operator of turret serve --json says where that port is"
_HELP: Final = {
    "operator_url": f"The operators' port, http(s)://HOST:PORT. Env TURRET_OPERATOR_URL. [{DEFAULT_URL}]",
    "operator_token_file": f"A file with the operators' token; - for stdin. Env TURRET_OPERATOR_TOKEN_FILE, or the "
    f"token itself in {OPERATOR}.",
    "config": "The broker's TOML file: its operators' port and token file. Env TURRET_CONFIG.",
    "json": "JSON on standard output. Env TURRET_JSON.",
}


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where the operators' port is, and by which token it is entered."""

    url: str
    token: str


def tools() -> Mapping[str, Tool]:
    """The operators' tools; importing the areas has filled the registry."""
    assert AREAS
    return collect("operator")


class _Tools(click.Group):
    """The operators' tools, each made into a command when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name.replace("_", "-") for name in tools()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        tool = tools().get(cmd_name.replace("-", "_"))
        return command_for(tool) if tool is not None else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0].startswith("-") or self.get_command(ctx, args[0]) is not None:
            return super().resolve_command(ctx, args)
        raise no_such_command(ctx, args[0], self.list_commands(ctx))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, tools()))
        for topic, those in by_topic(tools().values()).items():
            with formatter.section(topic[0].upper() + topic[1:]):
                formatter.write_dl([(command_name(tool).ljust(width), tool.title) for tool in those])


def operator_options(*, environment: bool) -> list[click.Parameter]:
    """The options of all these commands; with `environment` they are read from there where they are not given."""

    def option(name: str, **kind: Any) -> click.Option:
        envvar = f"TURRET_{name.upper()}" if environment else None
        return click.Option(
            [f"--{name.replace('_', '-')}"], help=_HELP[name], default=None, envvar=envvar, **kind
        )

    return [
        option("operator_url", metavar="URL"),
        option("operator_token_file", metavar="FILE"),
        option("config", type=click.Path(path_type=Path, dir_okay=False)),
        option("json", is_flag=True),
    ]


@click.pass_context
def _root(context: click.Context, /, **values: Any) -> None:
    """What operators do: see who is there, let in, suspend, moderate, and look at the audit.

    Each is a tool of the broker's operators' port, which is open where the broker was given a token for it.

    \b
    Example:
      turret admin --operator-token-file operators.token list-agents
    """
    context.obj = {**(context.find_object(dict) or {}), **given_of(values)}


admin = _Tools(
    "admin",
    callback=_root,
    params=operator_options(environment=True),
    help=_root.__doc__,
    no_args_is_help=False,
)


def command_for(tool: Tool) -> click.Command:
    """The sub-command of one tool."""
    schemas: dict[str, dict[str, Any]] = dict(tool.input_schema["properties"])
    required = [name for name in schemas if name in tool.input_schema["required"]]

    @merged
    def callback(options: Options, given: dict[str, Any], values: dict[str, Any]) -> None:
        patience_s = LONG_S if tool.streams else ANSWER_S
        options.show(run(_ask, place_of(given), tool.name, take_params(schemas, values), patience_s))

    params: list[click.Parameter] = [
        option_of(name, schema, name in required) for name, schema in schemas.items()
    ]
    name = tool.name.replace("_", "-")
    needs = "".join(f" {option_name(name)} …" for name in required)
    words = f"{tool.description}\n\n\b\nExample:\n  turret admin {name}{needs}"
    return click.Command(
        name, params=[*params, *operator_options(environment=False)], callback=callback, help=words
    )


def merged(command: Callable[[Options, dict[str, Any], dict[str, Any]], None]) -> Callable[..., None]:
    """Take the common options out of a command's values; those after the tool win over those before."""

    @wraps(command)
    def wrapped(**values: Any) -> None:
        own = given_of({name: values.pop(name) for name in _HELP})
        given = {**(click.get_current_context().find_object(dict) or {}), **own}
        command(Options(json=bool(given.get("json"))), given, values)

    return wrapped


def given_of(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def place_of(given: Mapping[str, Any]) -> Place:
    """Where to ask and with what: as the options and the environment say, then as the broker's file does."""
    serve = _configured(given.get("config"))
    url = str(given.get("operator_url") or _url(serve)).rstrip("/")
    check_way(url)
    file = given.get("operator_token_file")
    token = read_token(file) if file is not None else os.environ.get(OPERATOR, "").strip()
    if not token and serve.operator_token_file is not None:
        token = read_token(serve.operator_token_file)
    if not token:
        raise Failure("unauthenticated", _NO_TOKEN)
    return Place(url=url, token=token)


def _configured(file: Path | None) -> ServeOptions:
    if file is None:
        return ServeOptions()
    try:
        return load(file, {}).serve
    except ConfigError as error:
        raise Failure("config", str(error), USAGE) from None


def _url(serve: ServeOptions) -> str:
    """The operators' port of a broker with these settings, as this machine reaches it."""
    if serve.operator_url is not None:
        return serve.operator_url
    if not is_loopback(split_bind(serve.operator_bind)[0]):
        raise Failure("config", "serve.operator_url is not set: give --operator-url", USAGE)
    return f"http://{serve.operator_bind}"


async def _ask(place: Place, tool: str, params: dict[str, Any], patience_s: float) -> Any:
    async with operators(place) as mcp:
        return await ask_operators(mcp, place, tool, params, patience_s)


def operators(place: Place) -> ToolCaller:
    """The operators' port, to be entered."""
    mcp = ToolCaller(f"{place.url}/mcp")
    mcp.token = place.token
    return mcp


async def ask_operators(
    mcp: ToolCaller, place: Place, tool: str, params: dict[str, Any], patience_s: float = ANSWER_S
) -> Any:
    """What a tool of the operators answers, within so many seconds. Raises Refused, Disconnected, and Failure that says
    more than they do."""
    try:
        answer = await mcp.call(tool, join_params(params), patience_s)
    except Disconnected as lost:
        if str(lost).endswith("Connection refused"):
            raise Failure("cannot_connect", _nobody(place.url), NO_CONNECTION) from None
        raise
    except Refused as refused:
        if refused.code == "unauthenticated" and "operators'" not in refused.refusal.message:
            raise Failure("unauthenticated", f"{place.url} is not an operators' port{_OTHER}") from None
        raise
    return msgspec.json.decode(answer)


def _nobody(url: str) -> str:
    return (
        f"no operators' port answers at {url}; a broker has one where it is given a token "
        "(turret serve --operator-token-file FILE), and --operator-url names another"
    )

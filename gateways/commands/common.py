"""What every command shares: the common options, how output looks, and one line for whatever goes wrong.

1. A command prints to standard output what was asked for and nothing else; all else goes to standard error.
2. An error is one line `turret: <code>: <message>` and an exit code: 1 refused, 2 usage, 3 cannot connect.
3. Nothing here imports a server library: keygen, dial and verify work with the base install.
"""

import functools
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import click
import msgspec
import trio

from gateways.client.errors import CallEnded, DealerError, Disconnected, Refused, WireFault, collapse
from gateways.client.show import plain_json, printable
from gateways.keyfile import KeyFileError

DEFAULT_URL: Final = "http://127.0.0.1:8766"
REFUSED: Final = 1
USAGE: Final = 2
NO_CONNECTION: Final = 3
INTERRUPTED: Final = 130

T = TypeVar("T")
Command = Callable[..., Any]


class Failure(Exception):
    """A command's own "no": a code, one line, an exit code."""

    def __init__(self, code: str, message: str, exit_code: int = REFUSED) -> None:
        super().__init__(f"{code}: {message}")
        self.exit_code = exit_code


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """The common options of one run."""

    url: str = DEFAULT_URL
    key: Path | None = None
    wire: str | None = None
    json: bool = False

    def key_path(self) -> Path:
        """The key file. Raises a usage error where none was given."""
        if self.key is None:
            raise click.UsageError(
                "this needs a key: give --key FILE or set TURRET_KEY (turret keygen makes one)"
            )
        return self.key

    def show(self, value: object, text: str | None = None) -> None:
        """Print a result: its JSON on one line with --json, else `text`, else the JSON indented."""
        if self.json:
            click.echo(plain_json(msgspec.json.encode(value)))
        elif text is not None:
            click.echo(text)
        else:
            click.echo(plain_json(msgspec.json.format(msgspec.json.encode(value), indent=2)))


_NOBODY: Final = "; is a broker running there? (turret serve starts one, --url names another)"
_HELP: Final = {
    "url": f"The broker: http(s)://HOST:PORT, ws(s)://…, or http(s)://…/mcp. Env TURRET_URL. [{DEFAULT_URL}]",
    "key": "Your key file. Env TURRET_KEY.",
    "wire": "The wire's public key; else it is pinned at first use. Env TURRET_WIRE.",
    "json": "JSON on standard output. Env TURRET_JSON.",
}


def common_options(*, environment: bool) -> list[click.Option]:
    """--url, --key, --wire, --json; with `environment` they are read from TURRET_… where they are not given."""

    def option(name: str, **kind: Any) -> click.Option:
        envvar = f"TURRET_{name.upper()}" if environment else None
        return click.Option([f"--{name}"], help=_HELP[name], default=None, envvar=envvar, **kind)

    path = click.Path(path_type=Path, dir_okay=False)
    return [
        option("url", metavar="URL"),
        option("key", type=path),
        option("wire", metavar="PK"),
        option("json", is_flag=True),
    ]


def common(command: Command) -> Command:
    """Add the common options to a click callback, which gets them merged as its first argument.

    They may stand before or after the sub-command; the one after it wins.
    """

    @functools.wraps(command)
    def wrapped(*args: Any, **values: Any) -> Any:
        given = {name: values.pop(name) for name in _HELP}
        before = click.get_current_context().find_object(dict) or {}
        return command(Options(**{**before, **_given(given)}), *args, **values)

    # As click.option does; the list is read by click.command in reverse.
    options: list[click.Parameter] = [*reversed(common_options(environment=False))]
    wrapped.__click_params__ = options + getattr(command, "__click_params__", [])  # type: ignore[attr-defined]  # click's own place for them
    return wrapped


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def remember(context: click.Context, values: Mapping[str, Any]) -> None:
    """Keep the common options given before the sub-command, or by the environment."""
    context.obj = _given(values)


def run(function: Callable[..., Awaitable[T]], *args: Any) -> T:
    """trio.run for a command; of several faults at once, the one that tells."""
    try:
        return trio.run(function, *args)
    except BaseExceptionGroup as group:
        raise collapse(group) from None


def explain(fault: BaseException) -> tuple[str, int] | None:
    """The line (without `turret: `) and exit code for an expected fault; None for one that is not."""
    match fault:
        case Failure():
            return str(fault), fault.exit_code
        case Refused():
            return _refused(fault), REFUSED
        case CallEnded():
            return f"call_ended: {fault}", REFUSED
        case Disconnected():
            nobody = _NOBODY if str(fault).endswith("Connection refused") else ""
            return f"cannot_connect: {fault}{nobody}", NO_CONNECTION
        case WireFault():
            return f"wire_fault: {fault}", REFUSED
        case DealerError():
            return str(fault), REFUSED
        case KeyFileError():
            return f"key_file: {fault}", USAGE
        case click.UsageError():
            return f"usage: {_usage(fault)}", USAGE
        case click.ClickException():
            return f"usage: {fault.format_message()}", fault.exit_code
        case OSError():
            return f"file: {fault.filename or ''}: {fault.strerror or fault}".replace(": : ", ": "), USAGE
        case ValueError():
            return f"usage: {fault}", USAGE
        case _:
            return None


def _usage(fault: click.UsageError) -> str:
    help_at = fault.ctx.command_path if fault.ctx is not None else "turret"
    return f"{fault.format_message().rstrip('.')} (see `{help_at} --help`)"


def _refused(fault: Refused) -> str:
    """code: message, and the figures that help."""
    detail = fault.refusal.detail
    names = ("path", "reason", "n", "retry_after_ms", "limit", "size", "wire_ts", "version", "operation_id")
    facts = [f"{name} {detail[name]}" for name in names if name in detail]
    if isinstance(ids := detail.get("session_ids"), list):
        facts.append(f"session_ids {' '.join(map(str, ids))}")
    legal = detail.get("legal_actions")
    may = f"; legal are {msgspec.json.encode(legal).decode()}" if legal else ""
    return f"{fault}" + (f" ({', '.join(facts)})" if facts else "") + may


def fail(line: str) -> None:
    """Print the one line of an error; what others wrote in it can't steer the terminal."""
    click.echo(f"turret: {printable(' '.join(line.split()))}", err=True)


def echo_error(text: str) -> None:
    """A note for the person at the terminal: not part of the output."""
    click.echo(text, err=True)


def is_terminal() -> bool:
    """Whether standard output is one."""
    return sys.stdout.isatty()

"""A tool's params as the options of a command, and back: out of its own schema, with nothing listed by hand."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click
import msgspec

_FORM: Final = {"object": " (JSON, @FILE or -)", "array": " (may be repeated)"}
_FILED: Final = " (@FILE or -, since others here can read a command's arguments)"
_WRITTEN: Final = frozenset({"plan"})
"""Params whose text is written to a file sooner than on a command line, and is never one that begins with @."""
_TAKEN: Final = frozenset(
    {"url", "key", "wire", "json", "help", "agent", "token_file", "new_key", "config"}
    | {"operator_url", "operator_token_file"}
)
"""What options of the commands themselves are called."""
_KIND: Final[Mapping[str, Any]] = {"integer": click.INT, "boolean": click.BOOL}


def option_of(name: str, schema: Mapping[str, Any], required: bool) -> click.Option:
    """The option of one param: `--to-agent-id` for to_agent_id. A list is an option that may be repeated."""
    kind = str(schema.get("type"))
    return click.Option(
        [option_name(name), f"param_{name}"],
        type=_KIND.get(kind, click.STRING),
        multiple=kind == "array",
        required=required,
        help=_words(schema)
        + (
            _FILED if _is_secret(schema) else " (or @FILE, or -)" if name in _WRITTEN else _FORM.get(kind, "")
        ),
    )


def _words(schema: Mapping[str, Any]) -> str:
    """What a param is, with the values of which it is one where the words don't name each of them."""
    words = str(schema.get("description", ""))
    choices = [str(each) for each in schema.get("enum") or schema.get("items", {}).get("enum") or ()]
    if all(each in words for each in choices):
        return words
    return f"{words}: {', '.join(choices)}"


def option_name(name: str) -> str:
    """What the option of a param is called: `--param-url` where the command has a --url of its own."""
    return f"--{'param-' if name in _TAKEN else ''}{name.replace('_', '-')}"


def take_params(schemas: Mapping[str, Mapping[str, Any]], values: Mapping[str, Any]) -> dict[str, Any]:
    """The params that these options were given, as the tool takes them. Raises a usage error for what is no JSON."""
    read = {
        name: read_value(schema, values[f"param_{name}"], option_name(name))
        for name, schema in schemas.items()
    }
    read |= {name: _text(text) for name in _WRITTEN if isinstance(text := read.get(name), str)}
    return {name: value for name, value in read.items() if value is not None}


def read_value(schema: Mapping[str, Any], value: Any, label: str = "that") -> Any:
    """An option's value as the tool takes it; `label` names it where it is none. An object keeps its members' own text,
    down to each digit; a secret is not taken from the command line."""
    if schema.get("type") == "array":
        return list(value) if value else None
    if value is not None and _is_secret(schema):
        if value != "-" and not value.startswith("@"):
            raise click.UsageError(f"{label}: a secret is no argument, give @FILE, or - for standard input")
        return _text(value).removesuffix("\n").removesuffix("\r")
    if value is None or schema.get("type") != "object":
        return value
    try:
        return msgspec.json.decode(_text(value), type=dict[str, msgspec.Raw])
    except (msgspec.MsgspecError, RecursionError) as fault:
        raise click.UsageError(f"{label} is no JSON object: {fault}") from None


def _text(value: str) -> str:
    """What a value stands for: itself, a file's text (@FILE), or what comes on standard input (-)."""
    if value == "-":
        return sys.stdin.read()
    return Path(value[1:]).read_text(encoding="utf-8") if value.startswith("@") else value


def _is_secret(schema: Mapping[str, Any]) -> bool:
    """Whether a param is a secret, as its schema says: it is taken, and never shown."""
    return bool(schema.get("writeOnly"))

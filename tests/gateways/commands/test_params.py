"""A tool's params as options, and back."""

import io
from pathlib import Path

import click
import msgspec
import pytest

from broker.app import AREAS
from broker.tools.registry import collect
from gateways.commands.params import option_name, option_of, read_value, take_params

OBJECT = {"type": "object"}


@pytest.mark.requirement("cli.tools")
def test_an_option_says_what_the_param_is() -> None:
    option = option_of("agent_id", {"type": "string", "description": "whose"}, True)
    assert (option.opts, option.name, option.required, option.help) == (
        ["--agent-id"],
        "param_agent_id",
        True,
        "whose",
    )
    many = option_of("scopes", {"type": "array", "description": "which"}, False)
    assert (many.multiple, many.help) == (True, "which (may be repeated)")
    tiers = option_of("tier", {"type": "string", "enum": ["a", "b"], "description": "only these"}, False)
    assert tiers.help == "only these: a, b", "help names what a value may be"
    some = {"type": "array", "items": {"enum": ["task", "message"]}, "description": "some of: message, task"}
    assert option_of("scopes", some, False).help == "some of: message, task (may be repeated)"
    assert option_of("limit", {"type": "integer"}, False).type is click.INT
    assert option_of("test", {"type": "boolean"}, False).type is click.BOOL
    assert option_of("body", OBJECT, False).help == "(JSON, @FILE or -)"


@pytest.mark.requirement("cli.tools")
@pytest.mark.parametrize("name", ["url", "key", "wire", "json", "agent", "token_file", "operator_url"])
def test_a_param_that_is_called_like_an_option_of_the_command_has_another(name: str) -> None:
    assert option_name(name) == f"--param-{name.replace('_', '-')}"


@pytest.mark.requirement("cli.tools")
def test_what_was_not_given_is_left_out() -> None:
    schemas = {name: {"type": "string"} for name in ("a", "b")} | {"c": {"type": "array"}}
    assert take_params(schemas, {"param_a": "x", "param_b": None, "param_c": ()}) == {"a": "x"}
    assert take_params(schemas, {"param_a": None, "param_b": "", "param_c": ("1", "2")}) == {
        "b": "",
        "c": ["1", "2"],
    }


@pytest.mark.requirement("cli.tools")
def test_an_object_comes_as_json_from_a_file_or_from_standard_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "p.json"
    file.write_text('{"n": 1.0}')
    monkeypatch.setattr("sys.stdin", io.StringIO('{"n": 1.0}'))
    for value in ('{"n": 1.0}', f"@{file}", "-"):
        assert read_value(OBJECT, value) == {"n": msgspec.Raw(b"1.0")}, "each digit is kept"
    for value in ("[]", "{", "[" * 5000):
        with pytest.raises(click.UsageError, match="no JSON object"):
            read_value(OBJECT, value)


@pytest.mark.requirement("cli.tools")
def test_a_plan_comes_from_a_file_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    schemas = {name: {"type": "string"} for name in ("plan", "text")}
    file = tmp_path / "fade.plan"
    file.write_text("plan fade 1\n")
    monkeypatch.setattr("sys.stdin", io.StringIO("plan fade 1\n"))
    for value in ("plan fade 1\n", f"@{file}", "-"):
        taken = take_params(schemas, {"param_plan": value, "param_text": f"@{file}"})
        assert taken == {"plan": "plan fade 1\n", "text": f"@{file}"}, "what others say may begin with @"
    assert str(option_of("plan", schemas["plan"], True).help).endswith("(or @FILE, or -)")


@pytest.mark.requirement("threat.secrets-told")
def test_a_secret_comes_from_a_file_or_standard_input_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = {"type": "string", "writeOnly": True}
    file = tmp_path / "password"
    file.write_text(" a long secret \n")
    monkeypatch.setattr("sys.stdin", io.StringIO(" a long secret \r\n"))
    assert [read_value(schema, value) for value in (f"@{file}", "-", None)] == [" a long secret "] * 2 + [
        None
    ]
    with pytest.raises(click.UsageError, match="a secret is no argument") as refused:
        read_value(schema, "hunter2")
    assert "hunter2" not in str(refused.value)
    assert "@FILE or -" in str(option_of("password", schema, False).help)


@pytest.mark.requirement("threat.secrets-told")
def test_every_param_that_is_a_secret_is_marked() -> None:
    params = [
        (name, schema)
        for tool in (*collect("public").values(), *collect("operator").values())
        for name, schema in tool.input_schema["properties"].items()
    ]
    marked = {name for name, schema in params if schema.get("writeOnly")}
    assert AREAS
    assert marked == {
        name for name, _ in params if name in ("password", "token", "credentials", "secret", "value")
    }


@pytest.mark.requirement("cli.tools")
def test_what_is_no_json_is_named_by_its_option() -> None:
    for name, option in (("action", "--action"), ("config", "--param-config")):
        with pytest.raises(click.UsageError, match=f"^{option} is no JSON object"):
            take_params({name: OBJECT}, {f"param_{name}": "{type: stop}"})

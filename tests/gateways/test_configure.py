"""Configuration: file < environment < flags, unknown keys named, nothing open by mistake."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest
from msgspec.structs import replace

from broker.config import Arena, Limits, Owners, Settings
from gateways.cli import cli
from gateways.configure import (
    TOP,
    ConfigError,
    Configuration,
    ServeOptions,
    check,
    is_loopback,
    load,
    split_bind,
)


def test_the_defaults_are_loopback_and_open_transcripts() -> None:
    configuration = load(None, {})
    assert configuration == Configuration(settings=Settings(owners=Owners(sign_up="open")))
    assert configuration.serve.bind == "127.0.0.1:8766"
    assert configuration.settings.transcripts == "open"


@pytest.mark.parametrize(
    ("options", "expect"),
    [
        ({}, "open"),
        ({"bind": "[::1]:0"}, "open"),
        ({"public_url": "https://turret.example"}, "invitation"),
        ({"bind": "0.0.0.0:1", "tls_cert": "c", "tls_key": "k"}, "invitation"),
    ],
)
def test_anybody_may_sign_up_by_default_only_where_this_machine_alone_can_ask(
    options: dict[str, Any], expect: str
) -> None:
    flags = {**options, "transcripts": "open"}
    assert load(None, {}, flags).settings.owners.sign_up == expect
    for chosen in ("open", "invitation", "closed"):
        environment = {"TURRET_OWNERS_SIGN_UP": chosen}
        assert load(None, environment, flags).settings.owners.sign_up == chosen


def test_flags_outweigh_the_environment_and_the_environment_the_file(tmp_path: Path) -> None:
    file = tmp_path / "turret.toml"
    file.write_text(
        'transcripts = "parties"\n[serve]\nbind = "127.0.0.1:1"\ndata = "d"\n[limits]\nrings = 3\n'
    )
    environment = {
        "TURRET_BIND": "127.0.0.1:2",
        "TURRET_LIMITS_RINGS": "4",
        "TURRET_LIMITS_RINGS_KNOWN": "1",
        "TURRET_BEHIND_PROXY": "10.0.0.1, ::1",
    }
    configuration = load(file, environment, {"bind": "127.0.0.1:3", "dealing_bind": None})
    assert configuration.serve.bind == "127.0.0.1:3"
    assert configuration.serve.behind_proxy == ("10.0.0.1", "::1")
    assert configuration.serve.data == "d"
    assert configuration.settings.limits.rings == 4
    assert (configuration.settings.transcripts, configuration.transcripts_chosen) == ("parties", True)


@pytest.mark.requirement("cli.setting-bounds")
@pytest.mark.parametrize(
    ("text", "environment", "words"),
    [
        ("[limits]\nringz = 3\n", {}, "limits.ringz is no setting; did you mean rings?"),
        ("limit = 3\n", {}, "limit is no setting; did you mean limits?"),
        ('[server]\nbind = "x"\n', {}, "server is no setting; did you mean serve?"),
        ("[serve]\nport = 3\n", {}, "serve.port is no setting"),
        ('[limits]\nrings = "many"\n', {}, "rings"),
        ("[limits\n", {}, "turret.toml"),
        (
            "",
            {"TURRET_LIMITS_RINGZ": "3"},
            "TURRET_LIMITS_RINGZ is no setting; did you mean TURRET_LIMITS_RINGS",
        ),
        ('transcripts = "secret"\n', {}, "secret"),
        ("", {"TURRET_LIMITS_ENVELOPES": "-5"}, "limits.envelopes: expected `int` >= 1"),
        ("", {"TURRET_ACTORS_MAILBOX": "0"}, "actors.mailbox: expected `int` >= 1"),
        ("", {"TURRET_ACTORS_IDLE_S": "nan"}, "actors.idle_s: expected `float` >= 0.01"),
        ("", {"TURRET_ACTORS_IDLE_S": "inf"}, "actors.idle_s: expected `float` <= "),
        ("[calls]\nring_s = nan\n", {}, "calls.ring_s: expected `float` >= 0.01"),
        ("[limits]\nframe_bytes = 100\n", {}, "limits.frame_bytes: expected `int` >= 16384"),
        ('[desks]\nreserved = ["HELP", "help"]\n', {}, "desks.reserved[1]: expected `str` matching"),
        ("[limits]\nrings = 8\n", {}, "limits.rings_known (32) must be less than limits.rings (8)"),
        ("[streams]\nping_s = 30\n", {}, "streams.ping_s (30) must be less than streams.dead_s (30)"),
        ("", {"TURRET_PUBLIC_URL": "nonsense"}, "serve.public_url: 'nonsense' is no https://host[:port]"),
        ("", {"TURRET_DEALING_URL": "https://turret.example"}, "is no wss://host[:port]"),
        ("", {"TURRET_OPERATOR_URL": "ops.example"}, "serve.operator_url: 'ops.example' is no https://"),
        ('[serve]\noperator_token = "x"\n', {}, "serve.operator_token is no setting; did you mean"),
        (
            "",
            {"TURRET_ALLOWED_ORIGINS": "https://a.example,desk"},
            "serve.allowed_origins: 'desk' is no origin",
        ),
    ],
)
def test_what_can_not_be_used_is_named_in_one_line(
    text: str, environment: dict[str, str], words: str, tmp_path: Path
) -> None:
    file = tmp_path / "turret.toml"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load(file, environment)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.requirement("cli.setting-bounds")
def test_what_the_commands_read_from_the_environment_keeps_no_broker_from_starting() -> None:
    commands = [
        cli,
        *(
            cli.get_command(click.Context(cli), name)
            for name in (*cli.list_commands(click.Context(cli)), "whoami")
        ),
    ]
    names = {
        str(param.envvar) for each in commands if each is not None for param in each.params if param.envvar
    }
    assert names >= {"TURRET_KEY", "TURRET_AGENT", "TURRET_TOKEN_FILE", "TURRET_OPERATOR_URL"}
    load(None, dict.fromkeys(names, "http://127.0.0.1:8768"))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"gone\.toml"):
        load(tmp_path / "gone.toml", {})


@pytest.mark.requirement("tools.bind-refused", "operator.port")
@pytest.mark.parametrize(
    ("options", "chosen", "words"),
    [
        ({"bind": "0.0.0.0:1"}, True, "--tls-cert"),
        ({"dealing_bind": "[::]:1"}, True, "--behind-proxy"),
        ({"bind": "0.0.0.0:1", "behind_proxy": ("10.0.0.1",)}, True, "--public-url"),
        ({"bind": "0.0.0.0:1", "tls_cert": "c", "tls_key": "k"}, False, "--transcripts"),
        ({"tls_cert": "c"}, True, "go together"),
        ({"operator_bind": "10.0.0.1:1"}, True, "in the clear"),
        ({"operator_bind": "127.0.0.1"}, True, "host:port"),
        ({"bind": "127.0.0.1"}, True, "host:port"),
        ({"bind": "127.0.0.1:65536"}, True, "host:port"),
    ],
)
def test_a_bind_that_others_can_reach_needs_protection_and_a_chosen_mode(
    options: dict[str, Any], chosen: bool, words: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        check(Configuration(serve=ServeOptions(**options), transcripts_chosen=chosen))
    assert words in str(caught.value)


@pytest.mark.requirement("tools.unsafe-limits")
def test_a_bench_may_raise_the_limits_on_loopback_and_weakens_nothing_else() -> None:
    settings = load(None, {"TURRET_BENCH": "1"}, {"unsafe_limits": True}).settings
    raised = replace(Limits(), **{name: getattr(settings.limits, name) for name in RAISED})
    arena = replace(Arena(), open_sessions=100_000, sessions_per_day=10_000_000)
    assert settings == replace(
        Settings(unsafe_limits=True, limits=raised, arena=arena), owners=settings.owners
    )
    assert all(
        getattr(raised, name) > getattr(Limits(), name)
        for name in RAISED - {"window_ms", "channel_window_ms"}
    )
    assert (raised.window_ms, raised.channel_window_ms) == (1, 1)
    assert load(None, {"TURRET_BENCH": "1"}).settings == load(None, {}).settings


RAISED = {
    "window_ms",
    "channel_window_ms",
    "conversations",
    "rings",
    "rings_per_address",
    "opens_per_hour",
    "keyed_per_hour",
    "registrations_per_hour",
    "guesses",
}


@pytest.mark.requirement("tools.unsafe-limits")
@pytest.mark.parametrize(
    ("environment", "flags", "words"),
    [
        ({}, {"unsafe_limits": True}, "set TURRET_BENCH=1"),
        ({"TURRET_BENCH": "0", "TURRET_UNSAFE_LIMITS": "true"}, {}, "set TURRET_BENCH=1"),
        ({"TURRET_BENCH": "1"}, {"behind_proxy": ("10.0.0.1",)}, "every bind on loopback"),
        ({"TURRET_BENCH": "1"}, {"public_url": "https://a.example"}, "every bind on loopback"),
        (
            {"TURRET_BENCH": "1"},
            {"dealing_bind": "0.0.0.0:1", "tls_cert": "c", "tls_key": "k", "transcripts": "open"},
            "every bind on loopback",
        ),
        (
            {"TURRET_BENCH": "1"},
            {"operator_bind": "0.0.0.0:1", "tls_cert": "c", "tls_key": "k"},
            "every bind on loopback",
        ),
    ],
)
def test_limits_are_raised_for_nobody_else(
    environment: dict[str, str], flags: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load(None, environment, {"unsafe_limits": True, **flags})
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.requirement("tools.bind-refused")
@pytest.mark.parametrize(
    "options",
    [
        {"bind": "0.0.0.0:1", "tls_cert": "c", "tls_key": "k"},
        {"bind": "0.0.0.0:1", "behind_proxy": ("10.0.0.1",), "public_url": "https://turret.example"},
        {"bind": "[::1]:1", "dealing_bind": "localhost:2"},
        {"operator_bind": "10.0.0.1:1", "tls_cert": "c", "tls_key": "k"},
        {"operator_bind": "10.0.0.1:1", "behind_proxy": ("10.0.0.2",)},
    ],
)
def test_a_protected_bind_is_taken(options: dict[str, Any]) -> None:
    check(Configuration(serve=ServeOptions(**options), transcripts_chosen=True))


ISSUER = {"issuer": "https://id.example/realm", "issuer_client": "turret", "issuer_secret_file": "f"}


@pytest.mark.requirement("oauth.settings")
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"issuer": "https://id.example", "issuer_client": "turret"}, "go together"),
        ({"issuer_client": "turret"}, "go together"),
        ({**ISSUER, "issuer_secret_file": None}, "go together"),
        ({**ISSUER, "issuer": "id.example"}, "is no https://host"),
        ({**ISSUER, "issuer": "ftp://id.example"}, "is no https://host"),
        ({**ISSUER, "issuer": "https://id.example?x=1"}, "is no https://host"),
        ({**ISSUER, "issuer": "https://user@id.example"}, "is no https://host"),
        ({**ISSUER, "issuer": "http://id.example"}, "must be https://"),
        ({**ISSUER, "bind": "0.0.0.0:1", "tls_cert": "c", "tls_key": "k"}, "--public-url"),
    ],
)
def test_an_issuer_comes_with_all_that_it_needs(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check(Configuration(serve=ServeOptions(**options), transcripts_chosen=True))
    assert words in str(caught.value)


@pytest.mark.requirement("oauth.settings")
@pytest.mark.parametrize(
    "options",
    [
        ISSUER,
        {"issuer": "https://id.example"},
        {**ISSUER, "issuer": "http://127.0.0.1:9000"},
        {**ISSUER, "bind": "0.0.0.0:1", "tls_cert": "c", "tls_key": "k", "public_url": "https://a.example"},
    ],
)
def test_an_issuer_with_all_that_it_needs_is_taken(options: dict[str, Any]) -> None:
    check(Configuration(serve=ServeOptions(**options), transcripts_chosen=True))


@pytest.mark.parametrize(
    ("host", "expect"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("x", False),
    ],
)
def test_which_hosts_are_this_machines_alone(host: str, expect: bool) -> None:
    assert is_loopback(host) is expect


def test_a_bind_is_split() -> None:
    assert split_bind("[::1]:80") == ("::1", 80)
    assert split_bind("localhost:0") == ("localhost", 0)


@pytest.mark.requirement("cli.setting-bounds")
@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "-1", "-0.5", "1e30", "1e400", "9" * 40])
def test_no_number_outside_its_bounds_is_taken_by_any_setting(value: str) -> None:
    taken = []
    for section in msgspec.structs.fields(Settings):
        for field in msgspec.structs.fields(type(section.default)) if section.name not in TOP else ():
            if isinstance(field.default, int | float) or field.name == "conversations_days":
                name = f"{section.name}.{field.name}"
                with suppress(ConfigError):
                    load(None, {f"TURRET_{name.replace('.', '_')}".upper(): value})
                    taken.append(name)
    assert taken == []


@pytest.mark.requirement("cli.setting-bounds")
@pytest.mark.parametrize(
    "url",
    [
        "turret.example",
        "//turret.example",
        "https://",
        "https://:443",
        "https://turret.example:x",
        "https://turret.example:0",
        "https://turret.example:99999",
        "https://[::1",
        "https://user@turret.example",
        "https://turret.example/?a",
        "https://turret.example/#a",
        "https://turret .example",
        "https://turret.example\n",
        "ftp://turret.example",
        "wss://turret.example",
        "https://türret.example",
        "",
    ],
)
def test_a_public_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="public_url"):
        check(Configuration(serve=ServeOptions(public_url=url)))
    with pytest.raises(ConfigError, match="dealing_url"):
        check(Configuration(serve=ServeOptions(dealing_url=url.replace("wss", "https"))))


@pytest.mark.parametrize(
    "rest", ["turret.example", "turret.example:8443", "[2001:db8::1]:1", "1.2.3.4/base/"]
)
def test_a_public_address_is_taken(rest: str) -> None:
    check(Configuration(serve=ServeOptions(public_url=f"https://{rest}", dealing_url=f"wss://{rest}")))
    check(Configuration(serve=ServeOptions(public_url=f"http://{rest}", dealing_url=f"ws://{rest}")))


@pytest.mark.parametrize(
    "origin", ["https://a.example/", "https://a.example/x", "null", "*", "a.example", "ws://a"]
)
def test_an_origin_is_scheme_host_and_port_alone(origin: str) -> None:
    with pytest.raises(ConfigError, match="allowed_origins"):
        check(Configuration(serve=ServeOptions(allowed_origins=("http://b.example:80", origin))))


@pytest.mark.requirement("cli.environment-text")
def test_a_variable_that_is_not_utf8_is_named() -> None:
    with pytest.raises(ConfigError, match=r"^TURRET_BIND is not text in UTF-8$"):
        load(None, {"TURRET_BIND": b"127.0.0.1:\xff".decode("utf-8", "surrogateescape")})


@pytest.mark.requirement("cli.hostile")
@pytest.mark.parametrize(
    "text", [b"[limits]\nrings = " + b"9" * 5_000, b"a = " + b"[" * 20_000, b"\xff", b"a = ="]
)
def test_a_file_that_is_beyond_any_sense_is_one_line(tmp_path: Path, text: bytes) -> None:
    file = tmp_path / "turret.toml"
    file.write_bytes(text)
    with pytest.raises(ConfigError) as caught:
        load(file, {})
    assert len(str(caught.value).splitlines()) == 1
    assert str(caught.value).startswith(str(file))


@pytest.mark.requirement("cli.hostile")
@pytest.mark.parametrize("port", ["65536", "9" * 5_000, "0" * 5_000])
def test_a_port_beyond_any_sense_is_one_line(port: str) -> None:
    with pytest.raises(ConfigError, match=r"is not host:port"):
        split_bind(f"127.0.0.1:{port}")


@pytest.mark.requirement("operator.token")
def test_the_operators_token_is_no_setting_that_could_be_shown() -> None:
    configuration = load(None, {"TURRET_OPERATOR_TOKEN": "a secret", "TURRET_OPERATOR_BIND": "127.0.0.1:0"})
    assert "a secret" not in repr(configuration)
    assert configuration.serve.operator_bind == "127.0.0.1:0"

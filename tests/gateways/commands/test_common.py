"""What every command shares: options before or after, one line for every error."""

import json
from collections.abc import Callable

import click
import pytest
import trio

from broker.wire.envelope import Envelope
from broker.wire.refusals import refuse
from gateways.client.errors import CallEnded, Disconnected, Refused, WireFault
from gateways.commands.common import Failure, Options, explain, fail, run
from gateways.keyfile import KeyFileError
from tests.gateways.commands.conftest import Turret
from tests.support.network import refused_port

END = Envelope("00" * 8, 3, "END", "aa" * 32, "bb" * 32, 1, "cc" * 64, {"reason": "idle"}, b"")


@pytest.mark.requirement("cli.errors")
@pytest.mark.parametrize(
    ("fault", "line", "code"),
    [
        (Refused(refuse("unknown_desk", "nobody")), "unknown_desk: nobody", 1),
        (
            Refused(refuse("bad_envelope", "wrong", path="body.x")),
            "bad_envelope: wrong (path body.x)",
            1,
        ),
        (
            Refused(refuse("ILLEGAL_ACTION", "wrong", path="action", legal_actions=[{"type": "stop"}])),
            'ILLEGAL_ACTION: wrong (path action); legal are [{"type":"stop"}]',
            1,
        ),
        (
            Refused(refuse("CONFLICT", "late", version=3, operation_id="op_1")),
            "CONFLICT: late (version 3, operation_id op_1)",
            1,
        ),
        (
            Refused(refuse("LIMIT_EXCEEDED", "many", reason="open", session_ids=["tr_1", "tr_2"])),
            "LIMIT_EXCEEDED: many (reason open, session_ids tr_1 tr_2)",
            1,
        ),
        (CallEnded(END), "call_ended: the call has ended: idle", 1),
        (WireFault("lies"), "wire_fault: lies", 1),
        (Failure("no_ring", "nobody called"), "no_ring: nobody called", 1),
        (Disconnected("refused"), "cannot_connect: refused", 3),
        (KeyFileError("no key"), "key_file: no key", 2),
        (click.UsageError("no such thing."), "usage: no such thing (see `turret --help`)", 2),
        (FileNotFoundError(2, "No such file", "x"), "file: x: No such file", 2),
        (ValueError("odd"), "usage: odd", 2),
    ],
)
def test_an_expected_fault_is_a_line_and_an_exit_code(fault: Exception, line: str, code: int) -> None:
    assert explain(fault) == (line, code)


def test_an_unexpected_fault_is_not_explained_away() -> None:
    assert explain(KeyError("x")) is None


def test_an_error_line_is_one_line_and_harmless(capsys: pytest.CaptureFixture[str]) -> None:
    fail("bad\nnews \x1b[31m")
    assert capsys.readouterr().err == "turret: bad news \\u001b[31m\n"


@pytest.mark.requirement("cli.harmless")
@pytest.mark.parametrize("as_json", [True, False])
def test_what_others_wrote_into_a_result_does_not_steer_the_terminal(
    capsys: pytest.CaptureFixture[str], as_json: bool
) -> None:
    said = {"details": "hi \x1b]0;a\x07 \x9b31m \u202eevil \u2028 \U000e0041 \r\n ü 🚀 \x7f"}
    Options(json=as_json).show(said)
    shown = capsys.readouterr().out
    assert shown.replace("\n", "").isprintable()
    assert (shown.count("\n"), "ü 🚀" in shown) == (1 if as_json else 3, True)
    assert json.loads(shown) == said


def test_of_several_faults_the_one_that_tells_is_raised() -> None:
    async def both() -> None:
        raise BaseExceptionGroup("x", [Disconnected("eof"), WireFault("lies")])

    with pytest.raises(WireFault, match="lies"):
        run(both)


@pytest.mark.parametrize(
    "arrange",
    [
        lambda url: (["--url", url, "resolve", "ALFA"], {}),
        lambda url: (["resolve", "ALFA", "--url", url], {}),
        lambda url: (["resolve", "ALFA"], {"TURRET_URL": url}),
        lambda url: (["--url", "http://127.0.0.1:2", "resolve", "ALFA", "--url", url], {}),
    ],
)
def test_common_options_stand_before_or_after_or_in_the_environment(
    turret: Turret,
    monkeypatch: pytest.MonkeyPatch,
    arrange: Callable[[str], tuple[list[str], dict[str, str]]],
) -> None:
    arguments, environment = arrange("http://127.0.0.1:1")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    ran = turret.run(*arguments)
    assert ran.code == 3
    assert ran.err.startswith(
        "turret: cannot_connect: cannot connect to 127.0.0.1:1: Connection refused; is a broker"
    )
    assert ran.err.count("\n") == 1


async def test_an_agents_command_asks_whether_a_broker_is_there_too(turret: Turret) -> None:
    key = await trio.to_thread.run_sync(turret.key, "ann")
    ag = "ag_" + "0" * 26
    ran = await turret("whoami", "--key", key, "--agent", ag, "--url", f"http://127.0.0.1:{refused_port()}")
    assert ran.code == 3
    assert "is a broker running there? (turret serve" in ran.err


def test_a_command_that_needs_a_key_says_how_to_get_one() -> None:
    with pytest.raises(click.UsageError, match="turret keygen makes one"):
        Options().key_path()

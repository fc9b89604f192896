"""The log: one line a record, without secrets, whatever is in it."""

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import trio

from broker.config import Log
from gateways import logs, render, requestid
from gateways.metrics import Metrics
from gateways.web import web_app
from tests.support.broker_fake import FakeBroker, proof
from tests.support.network import serving
from tests.support.ws import open_port

HOSTILE = 'a\r\n{"level":"info","event":"forged"}\x1b[2J\x9b31m\u2028b\u202ec\ud800\x00\x7f'


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """What is logged, as JSON; all as it was before on leaving."""
    with kept():
        stream = io.StringIO()
        logs.configure(Log(format="json", level="debug"), stream)
        yield stream


class kept:
    """The standard library's loggers as they were, on leaving."""

    def __enter__(self) -> None:
        root = logging.getLogger()
        self.before = list(root.handlers), root.level, {n: logging.getLogger(n).level for n in logs.OURS}

    def __exit__(self, *_: object) -> None:
        handlers, level, levels = self.before
        root = logging.getLogger()
        root.handlers[:] = handlers
        root.setLevel(level)
        for name, each in levels.items():
            logging.getLogger(name).setLevel(each)


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


@pytest.mark.requirement("observe.logs")
def test_a_record_is_one_line_of_json_with_what_it_says_first(written: io.StringIO) -> None:
    with requestid.bound("edge-7f3a.0001"):
        logging.getLogger("turret.store").warning("a commit was refused: %s", "full", extra={"n": 1})
    (record,) = lines(written)
    assert list(record)[:4] == ["timestamp", "level", "logger", "event"]
    assert record["level"] == "warning"
    assert record["logger"] == "turret.store"
    assert record["event"] == "a commit was refused: full"
    assert record["request_id"] == "edge-7f3a.0001"
    assert record["timestamp"].endswith("Z")


@pytest.mark.requirement("observe.logs")
@pytest.mark.parametrize("form", ["json", "text"])
def test_nothing_that_somebody_wrote_leaves_its_place(form: str) -> None:
    stream = io.StringIO()
    with kept():
        logs.configure(Log(format=form), stream)  # type: ignore[arg-type]  # both are literals
        try:
            raise ValueError(HOSTILE)
        except ValueError as fault:
            render.incident(fault, HOSTILE)
        logging.getLogger(f"gateways.{HOSTILE}").warning("%s", HOSTILE)
    text = stream.getvalue()
    assert len(text.splitlines()) == text.count("\n") == 2
    assert text.replace("\n", "").isprintable()
    assert "forged" in text, "what was said is there, as an escape"
    if form == "json":
        assert [record["level"] for record in lines(stream)] == ["error", "warning"]


@pytest.mark.requirement("observe.logs")
@pytest.mark.parametrize(
    ("settings", "stream", "starts"),
    [
        (Log(), io.StringIO(), "{"),
        (Log(), Terminal(), "2"),
        (Log(format="json"), Terminal(), "{"),
        (Log(format="text"), io.StringIO(), "2"),
    ],
)
def test_the_form_is_what_the_settings_say_or_what_reads_it(
    settings: Log, stream: io.StringIO, starts: str
) -> None:
    with kept():
        logs.configure(settings, stream)
        logging.getLogger("turret").info("stopping")
    assert stream.getvalue().startswith(starts)
    assert "stopping" in stream.getvalue()


@pytest.mark.requirement("observe.logs")
@pytest.mark.parametrize(("level", "heard"), [("debug", 4), ("info", 3), ("warning", 2), ("error", 1)])
def test_what_is_less_than_the_level_is_not_written_and_libraries_are_heard_from_warning_on(
    level: str, heard: int
) -> None:
    stream = io.StringIO()
    with kept():
        logs.configure(Log(format="json", level=level), stream)  # type: ignore[arg-type]  # all are literals
        for name in ("debug", "info", "warning", "error"):
            getattr(logging.getLogger("turret.x"), name)("said")
        assert len(lines(stream)) == heard
        logging.getLogger("httpx").info("a library")
        assert len(lines(stream)) == heard
        logging.getLogger("httpx").warning("a library")
    assert len(lines(stream)) == heard + 1


def test_a_text_without_end_is_cut(written: io.StringIO) -> None:
    logging.getLogger("turret").warning("x" * 100_000)
    assert len(written.getvalue()) < 20_000


SECRETS = (
    "planted-bearer.Zm9vYmFy",
    "planted-cookie-5a5a5a",
    "planted-password-77",
    "cd" * 64,
    "planted-nonce-31",
)


def leaky(*_: Any) -> None:
    """A tool that fails with all that its caller sent, as code that nobody looked at may."""
    bearer, cookie, password, sig, nonce = SECRETS
    raise RuntimeError(
        f"headers [(b'authorization', b'Bearer {bearer}'), (b'cookie', b'sid={cookie}')] "
        f'body {{"password":"{password}","sig":"{sig}","statement":{{"do":"follow","nonce":"{nonce}"}}}}'
    )


@pytest.mark.requirement("observe.no-secrets")
async def test_secrets_at_every_door_stand_in_no_line_of_the_log(written: io.StringIO) -> None:
    bearer, cookie, password, sig, nonce = SECRETS
    broker = FakeBroker()

    async def fail(*_: Any) -> None:
        leaky()

    broker.answers["echo"] = fail
    params = {"password": password, "sig": sig, "statement": {"do": "follow", "nonce": nonce}}
    shown = {"authorization": f"Turret {proof(nonce=nonce)}", "cookie": f"sid={cookie}"}
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "echo", "arguments": params},
    }
    async with (
        serving(web_app(broker, Metrics(broker))) as server,  # type: ignore[arg-type]
        httpx.AsyncClient(base_url=server.url) as http,
    ):
        for headers in (shown, {**shown, "authorization": f"Bearer {bearer}"}, {"cookie": f"sid={cookie}"}):
            for path in (
                "/v1/echo",
                "/v1/none",
                "/mcp",
                "/rings/ALFA",
                "/oauth/token",
                "/agents/register",
                "/x",
            ):
                body = call if path == "/mcp" else params
                answer = await http.post(f"{path}?auth={bearer}&token={bearer}", json=body, headers=headers)
                assert "planted" not in answer.text
    async with open_port(broker) as port:
        client = await port.dial({"Authorization": f"Turret {proof(nonce=nonce)}"})
        assert (await client.ask("echo", **params))["error"]["code"] == -32603
        await client.ask("authenticate", token=bearer)
        await client.ask("authenticate", statement={"nonce": nonce}, sig=sig)
        with trio.fail_after(5):
            await client.send(f'{{"token":"{bearer}'.encode())
            await client.receive()
    text = written.getvalue()
    assert text.count("incident") >= 3, "faults were met at doors of both ports"
    assert [secret for secret in SECRETS if secret in text] == []

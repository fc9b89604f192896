"""Secrets stay where they are: in no log at its loudest, no answer, metric, argument, environment or repr."""

import base64
import gc
import json
import logging
import os
import subprocess
import sys
import traceback
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import click
import httpx
import pytest
import trio
import trio_websocket

from broker.clock import SystemClock
from broker.store.memory import MemoryStore
from broker.wire.keys import SigningKey
from gateways.caller import write_proof
from gateways.cli import cli
from gateways.client.signer import Signer
from gateways.keyfile import KeyFileError, load_key
from gateways.mcp.sealed import Seal
from gateways.oauth.outside import open_tokens
from gateways.wirekeys import WireKeyError, open_keyring
from tests.security.deal import Deal, make_a_deal
from tests.security.loud import FAULT
from tests.support.issuer import CLIENT, SECRET, Issuer, issuing
from tests.support.peers import Download, dial
from tests.support.process import Served

TOKEN = "token-of-the-test.QmVhcmVy"
BAD_TOKEN = "token-that-nobody-gave.QmVhcmVy"
INHERITED = "what-the-operators-shell-had"
BOTH = "application/json, text/event-stream"


class Seen:
    """All that came out of a broker, by where it came from."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def add(self, where: str, answer: httpx.Response) -> httpx.Response:
        self.texts[f"{where} ({answer.status_code})"] = f"{answer.headers.raw!r}\n{answer.text}"
        return answer


@asynccontextmanager
async def loud(data: Path, **environment: str) -> AsyncIterator[Served]:
    """A broker as tests.security.loud has it, with a helper process."""
    errors = data.parent / "errors"
    command = [sys.executable, "-m", "tests.security.loud", "serve", "--json", "--data", str(data)]
    command += ["--bind", "127.0.0.1:0", "--dealing-bind", "127.0.0.1:0", "--transcripts", "parties"]
    given = {**os.environ, "TURRET_VERIFY_HELPERS": "1", **environment}
    with errors.open("wb") as log:
        process = await trio.lowlevel.open_process(command, stdout=subprocess.PIPE, stderr=log, env=given)
    try:
        assert process.stdout is not None
        with trio.fail_after(20):
            ready = b""
            while not ready.endswith(b"\n"):
                piece = await process.stdout.receive_some(4096)
                assert piece, errors.read_text()
                ready += piece
        yield Served(process, json.loads(ready), errors)
    finally:
        process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()
            if process.stdout is not None:
                await process.stdout.aclose()


async def refuse_and_fail(
    http: httpx.AsyncClient, deal: Deal, proofs: list[dict[str, Any]], seen: Seen
) -> None:
    """Secrets in every place where a client may put them, right and wrong, and a fault that meets them."""
    proof, spoilt = proofs
    text = json.dumps(proof)
    for where, tool, body in (
        ("reading", "read_conv", json.dumps({"conv": deal.conv, **proof})),
        ("a fault", "receipt", json.dumps({"conv": deal.conv, "n": 1, **proof})),
        ("a sig of another", "list_convs", json.dumps({**spoilt, "sig": proof["sig"]})),
        ("a sig cut short", "list_convs", json.dumps({**proof, "sig": proof["sig"][:-1]})),
        ("a sig and more", "list_convs", json.dumps({**proof, "sig": proof["sig"] + "0"})),
        ("a sig for a number", "list_convs", json.dumps({**proof, "limit": proof["sig"]})),
        ("a sig for a code", "resolve_code", json.dumps({"code": proof["sig"]})),
        ("a sig for a conv", "read_conv", json.dumps({"conv": proof["sig"]})),
        ("a text for a statement", "list_convs", json.dumps({**proof, "statement": text})),
        ("a statement twice", "list_convs", text[:-1] + "," + text[1:]),
        ("JSON cut short", "list_convs", text[:-1]),
        ("JSON and more", "list_convs", text + "x"),
        ("another wire", "list_convs", text.replace(deal.caller.wire, "0" * 64)),
        ("not UTF-8", "list_convs", text.replace("follow", "f\x80ollow")),
    ):
        headers = {"content-type": "application/json"}
        content = body.encode("latin-1")
        seen.add(where, await http.post(f"/v1/{tool}", content=content, headers=headers))
        call = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"%b","arguments":%b}}'
        mcp = call % (tool.encode(), content)
        seen.add(f"{where}, MCP", await http.post("/mcp", content=mcp, headers={**headers, "accept": BOTH}))


async def show_in_headers(http: httpx.AsyncClient, deal: Deal, shown: str, seen: Seen) -> None:
    """Proofs and tokens in Authorization and in queries, as they should be and as they should not."""
    tools = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    for words in (
        f"Turret {shown}", f"Turret {shown}x", f"Turret x{shown}", f"Basic {shown}", shown,
        f"Bearer {TOKEN}", f"Bearer {BAD_TOKEN}", f"Bearer {BAD_TOKEN} {TOKEN}", f"Turret {TOKEN}", f"Bearer {shown}",
    ):  # fmt: skip
        headers = {"authorization": words, "accept": BOTH}
        place = f"Authorization {words[:9]}… {len(words)}"
        for path in ("/mcp", "/mcp/arena", "/mcp/wire"):
            seen.add(f"{place} {path}", await http.post(path, json=tools, headers=headers))
        seen.add(place, await http.post("/v1/list_convs", json={}, headers=headers))
        if not words.startswith(f"Turret {shown}") or words.endswith("x"):
            seen.add(f"{place} SSE", await http.get(f"/rings/{deal.caller.code}", headers=headers))
    for query in (f"auth=x{quote(shown)}", f"token={TOKEN}", f"auth={TOKEN}"):
        seen.add(f"?{query[:6]}", await http.get(f"/rings/{deal.caller.code}?{query}"))
        seen.add(f"404 ?{query[:6]}", await http.get(f"/nowhere?{query}"))
    address = (http.base_url.host, http.base_url.port or 80)
    for path, headers in (("", {"authorization": f"Turret {shown}"}), (f"?auth={quote(shown)}", {})):
        async with dial(address) as stream:
            events = Download(stream)
            await events.ask(f"/rings/{deal.caller.code}{path}", headers)
            assert events.status == 200
            seen.texts[f"SSE {path[:6]}"] = f"{events.headers!r}\n{(await events.read()).decode()}"


async def show_in_frames(url: str, deal: Deal, proof: dict[str, Any], seen: Seen) -> None:
    """The same over a WebSocket."""
    frames = []
    follow = json.dumps({"code": deal.caller.code, **proof})
    async with trio_websocket.open_websocket_url(url) as socket:
        challenge = json.loads(await socket.get_message())["params"]["challenge"]
        for method, params in (
            ("authenticate", json.dumps({"token": TOKEN})),
            ("authenticate", json.dumps(proof)),
            ("authenticate", json.dumps(deal.caller.statement("authenticate"))),
            ("receipt", json.dumps({"conv": deal.conv, "n": 1, **proof})),
            ("list_convs", json.dumps({**proof, "sig": proof["sig"][::-1]})),
            ("list_convs", json.dumps(proof)[:-1]),
            ("follow", follow[:-1]),
            ("follow", follow),
        ):
            frame = f'{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}'
            await socket.send_message(frame)
            with trio.fail_after(5):
                frames.append(await socket.get_message())
        assert challenge
    seen.texts[url] = "\n".join(frames)


def told_to_the_system(pid: int) -> Iterator[tuple[str, str]]:
    """What `ps` shows of a process and of its children: arguments and environment."""
    children = [
        each for path in Path(f"/proc/{pid}/task").glob("*/children") for each in path.read_text().split()
    ]
    assert children, "the helper"
    for place, each in (("the broker", str(pid)), *(("a child", each) for each in children)):
        for name in ("cmdline", "environ"):
            yield f"{name} of {place}", Path(f"/proc/{each}/{name}").read_text(errors="replace")


def spellings(secret: str) -> set[str]:
    """A secret as it may be written."""
    raw = secret.encode()
    encoded = {base64.b64encode(raw).decode(), base64.urlsafe_b64encode(raw).decode().rstrip("=")}
    return {secret, quote(secret), quote_plus(secret), json.dumps(secret)[1:-1], *encoded}


@pytest.mark.requirement("threat.secrets-told", "threat.helper")
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks at processes by /proc")
async def test_no_secret_is_in_a_log_an_answer_a_figure_or_a_process(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(f"{SECRET}\n")
    (tmp_path / "secret").chmod(0o600)
    seen = Seen()
    async with issuing() as issuer:
        environment = {
            "TURRET_ISSUER": issuer.url,
            "TURRET_ISSUER_CLIENT": CLIENT,
            "TURRET_ISSUER_SECRET_FILE": str(tmp_path / "secret"),
            "SOMEBODY_ELSES": INHERITED,
        }
        async with loud(tmp_path / "data", **environment) as broker:
            issuer.give(TOKEN, f"{broker.http}/mcp", scope="message arena trial")
            secrets = await play(broker, issuer, seen)
            seen.texts.update(told_to_the_system(broker.process.pid))
            assert await broker.stop() == 0
            assert INHERITED in seen.texts.pop("environ of the broker")
            seen.texts["the log"] = broker.errors.read_text()
    log = seen.texts["the log"]
    assert log.count(f"RuntimeError: {FAULT}") >= 3, "faults are logged, with their traceback"
    assert "DEBUG" in log, "the log is at its loudest"
    assert FAULT not in "".join(text for where, text in seen.texts.items() if where != "the log")
    wire = [json.loads(line)["seed"] for line in (tmp_path / "data" / "wire.key").read_text().splitlines()]
    secrets |= {
        "the wire's seed": wire[0],
        "the client's secret": SECRET,
        "a token": TOKEN,
        "no token": BAD_TOKEN,
    }
    secrets["the operator's environment"] = INHERITED
    secrets["the issuer's password"] = f"{quote_plus(CLIENT)}:{quote_plus(SECRET)}"
    found = [
        f"{name} in {where}"
        for where, text in seen.texts.items()
        for name, secret in secrets.items()
        if any(each in text for each in spellings(secret)) and not told_to_its_sender(name, text)
    ]
    assert found == []


def told_to_its_sender(name: str, text: str) -> bool:
    """A statement that did not verify is shown to who sent it, as it was checked; without its sig it opens nothing."""
    return name.endswith("nonce") and '"bad_statement"' in text and '"canonical":' in text


async def play(broker: Served, issuer: Issuer, seen: Seen) -> dict[str, str]:
    """A deal, and all that can go wrong around it; the secrets that were used, by name."""
    async with httpx.AsyncClient(base_url=broker.http, timeout=10) as http:
        deal = await make_a_deal(http, broker.pk)
        for number, answer in enumerate(deal.answers):
            seen.add(f"deal {number}", answer)
        proof, spoilt = deal.caller.follow(), deal.caller.follow()
        text = json.dumps(proof["statement"], sort_keys=True, separators=(",", ":")).encode()
        shown = write_proof(text, proof["sig"])
        await refuse_and_fail(http, deal, [proof, spoilt], seen)
        await show_in_headers(http, deal, shown, seen)
        for url in (broker.http.replace("http", "ws", 1) + "/ws", broker.dealing):
            await show_in_frames(url, deal, proof, seen)
        assert issuer.asked, "the issuer judged tokens"
        for path in ("/metrics", "/openapi.json", "/.well-known/turret.json", "/readyz"):
            seen.add(path, await http.get(path))
    return {
        "the caller's seed": deal.caller.key.seed,
        "the called one's seed": deal.called.key.seed,
        "a follow statement's sig": proof["sig"],
        "a follow statement's nonce": proof["statement"]["nonce"],
        "another's nonce": spoilt["statement"]["nonce"],
        "a proof": shown,
        "a proof's first half": shown.partition(".")[0],
    }


@pytest.mark.requirement("threat.secrets-told")
async def test_no_object_of_ours_shows_a_secret_of_its_own(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    key, seal = SigningKey.generate(), Seal(b"k" * 32)
    with caplog.at_level(logging.DEBUG):
        keyring = await open_keyring(tmp_path, MemoryStore(), 1000)
        async with open_tokens("http://127.0.0.1:1", "turret", SECRET, SystemClock()) as tokens:
            signer = Signer(key, keyring.pk, lambda: 1.0)
            held = [key, seal, keyring, tokens, signer]
            ours = [
                each
                for each in gc.get_objects()
                if str(type(each).__module__).partition(".")[0] in ("broker", "gateways")  # some give no text
            ]
            assert {id(each) for each in held if gc.is_tracked(each)} <= {id(each) for each in ours}
            shown = [repr(each) + str(each) for each in (*held, *ours)]
    wire = json.loads((tmp_path / "wire.key").read_text())["seed"]
    secrets = {secret for each in (key.seed, wire, SECRET) for secret in spellings(each)}
    secrets |= {repr(key._secret), repr(b"k" * 32)}
    assert [text[:200] for text in (*shown, caplog.text) if any(each in text for each in secrets)] == []


@pytest.mark.requirement("threat.secrets-told")
@pytest.mark.parametrize(
    "spoilt", ["{}", "{}0", "{}\n{}", '{{"seed":"{}","since":"x"}}', '{{"seed":"{}0","since":1}}', "{}\udcff"]
)
async def test_a_key_file_that_can_not_be_read_is_not_shown(tmp_path: Path, spoilt: str) -> None:
    seed = SigningKey.generate().seed
    for name in ("my.key", "wire.key"):
        (tmp_path / name).write_bytes(spoilt.format(seed, seed).encode(errors="surrogateescape"))
        (tmp_path / name).chmod(0o600)
    told = []
    try:
        load_key(tmp_path / "my.key")
    except KeyFileError as fault:
        told.append(fault)
    try:
        await open_keyring(tmp_path, MemoryStore(), 1000)
    except WireKeyError as fault:
        told.append(fault)
    assert told
    for fault in told:
        assert seed not in "".join(traceback.format_exception(fault)) + repr(fault)


@pytest.mark.requirement("threat.secrets-told")
def test_no_command_takes_a_secret_as_an_argument() -> None:
    """Arguments stand in `ps` for everybody: a secret is given as a file's name."""
    with click.Context(cli) as context:
        commands = {name: cli.get_command(context, name) for name in cli.list_commands(context)}
    asking = [
        f"{name} {option.opts}"
        for name, command in commands.items()
        if command is not None
        for option in command.params
        for word in ("seed", "secret", "token", "password", "private")
        if option.name is not None
        and word in option.name
        and not option.name.endswith(("_file", "_key"))
        and (name, option.name) != ("demo", "seed")  # of a market for show
    ]
    assert asking == []

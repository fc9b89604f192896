"""The page on receiving webhooks: its receiver takes what a broker sends, and its settings load."""

import json
import re
from http.server import HTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from broker.clock import SystemClock
from broker.core.push import DELAYS_S, GIVE_UP_MS, LONGEST_S
from broker.tools.registry import collect
from gateways.configure import load
from gateways.courier import PATIENCE_S, Courier
from gateways.outbound import Outbound
from tests.docs.pages import HOW_TO, blocks
from tests.support.agents import make_agent
from tests.support.broker import open_bench, tuned
from tests.support.pairs import agree, send

PAGE = "receive-webhooks.md"
TEXT = (HOW_TO / PAGE).read_text()


def receiver(secret: str) -> type[Any]:
    """The page's handler, with a secret in it."""
    (block,) = blocks(PAGE, "python")
    program, last = block.strip().rsplit("\n", 1)
    assert last.endswith("serve_forever()")
    names: dict[str, Any] = {}
    exec(program.replace("whsec_<secret>", secret), names)
    handler: type[Any] = names["In"]
    handler.log_message = lambda *_: None
    return handler


@pytest.mark.requirement("webhook.event")
async def test_the_receiver_takes_what_a_broker_sends_once_and_nothing_else(
    capsys: pytest.CaptureFixture[str],
) -> None:
    way = Courier(Outbound(loopback=True))
    with HTTPServer(("127.0.0.1", 0), lambda *_: None) as server:  # type: ignore[arg-type,return-value]
        server.timeout = 5
        url = f"http://127.0.0.1:{server.server_port}/"
        async with open_bench(
            tuned(webhooks={"allow_loopback": True}), clock=SystemClock(), courier=way
        ) as bench:
            ann, bob = await make_agent(bench, "Ann"), await make_agent(bench, "Bob")
            await agree(bench, ann, bob)
            secret = (await bench.call("set_webhook", bob, url=url))["secret"]
            server.RequestHandlerClass = receiver(secret)
            await send(bench, ann, bob, "hello")
            await trio.to_thread.run_sync(server.handle_request)
            cursor = (await bench.call("wait_for_events", bob, after="0"))["events"][-2]["cursor"]
            await bench.call("redeliver_webhook_events", bob, after=cursor)
            await trio.to_thread.run_sync(server.handle_request)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(trio.to_thread.run_sync, server.handle_request)
                async with httpx.AsyncClient(trust_env=False) as client:
                    forged = {"webhook-id": "x", "webhook-timestamp": "1", "webhook-signature": "v1,AAAA"}
                    assert (await client.post(url, content=b"{}", headers=forged)).status_code == 401
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("message {")
    assert "'body': 'hello'" in line


@pytest.mark.parametrize("text", blocks(PAGE, "toml"))
def test_its_settings_load(text: str, tmp_path: Path) -> None:
    file = tmp_path / "turret.toml"
    file.write_text(text)
    assert load(file, {}).settings.webhooks.allow_loopback


def test_what_it_says_of_times_and_tools_is_so() -> None:
    words = {
        "5 s": 5,
        "30 s": 30,
        "2 min": 120,
        "10 min": 600,
        "30 min": 1800,
        "1 h": 3600,
        "2 h": 7200,
        "4 h": 14_400,
    }
    assert tuple(words.values()) == DELAYS_S
    assert all(each in TEXT for each in words)
    assert (GIVE_UP_MS, LONGEST_S, PATIENCE_S) == (24 * 3_600_000, 3600, 15.0)
    tools = set(re.findall(r"`(\w*webhook\w*)`", TEXT)) - {"webhook"}
    assert tools <= set(collect())
    assert {"test_webhook", "get_webhook", "redeliver_webhook_events", "rotate_webhook_secret"} <= tools
    (shown,) = blocks(PAGE, "json")
    assert set(json.loads(shown)) == {"type", "timestamp", "data"}

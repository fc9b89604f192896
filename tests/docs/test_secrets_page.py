"""The commands of docs/how-to/keep-a-secret.md, run in their order beside a broker."""

import re
from pathlib import Path
from typing import Any, cast, get_args

import pytest

from broker.core.push import Why
from broker.tools.registry import collect
from broker.wire.keys import SigningKey
from gateways.configure import load
from gateways.keyfile import save_key
from tests.docs.pages import HOW_TO, command_lines
from tests.gateways.client.live import Live
from tests.gateways.commands.conftest import Turret, live, turret
from tests.support.agents import make_agent
from tests.support.broker import Bench

PAGE = "keep-a-secret.md"
TEXT = (HOW_TO / PAGE).read_text()
__all__ = ["live", "turret"]


@pytest.mark.requirement("trial.secret-used", "cli.tools")
async def test_each_command_of_the_page_does_what_it_says(live: Live, turret: Turret) -> None:
    key = SigningKey.generate()
    save_key(Path("my.key"), key)
    services = live.broker._services
    bench = Bench(live.broker, services.store, cast(Any, services.clock))
    agent_id = str((await make_agent(bench, "Ann", key=key)).agent)
    (turret.directory / "hook-token.txt").write_text("a value\n")
    said = {}
    for program, tool, *rest in command_lines(PAGE):
        assert program == "turret"
        if tool == "rotate-secrets-key":  # tests/gateways/commands/test_secrets_key.py
            continue
        ran = await turret(tool, *rest, "--agent", agent_id, "--wire", live.wire)
        assert "a value" not in ran.out + ran.err
        said[tool] = ran
    assert list(said) == ["kestrel.secrets.set", "set-webhook", "test-webhook"]
    assert [said[tool].code for tool in ("kestrel.secrets.set", "set-webhook")] == [0, 0], said
    assert "sends nothing out" in said["test-webhook"].err, "this broker has no way out"
    headers = (("authorization", "Bearer ${HOOK_TOKEN}"),)
    assert await services.safe.fill(agent_id, headers) == (("authorization", "Bearer a value"),)


@pytest.mark.requirement("trial.secret-used")
def test_what_it_names_is_there(tmp_path: Path) -> None:
    assert set(re.findall(r"`(kestrel[.\w]*|\w+_webhook\w*)`", TEXT)) <= set(collect())
    assert set(re.findall(r"`(secret_\w+)`", TEXT)) == {
        each for each in get_args(Why) if each.startswith("secret_")
    }
    (named,) = re.findall(r"`(TURRET_\w+)`", TEXT)
    assert load(None, {named: str(tmp_path)}).serve.secrets_key_file == str(tmp_path)

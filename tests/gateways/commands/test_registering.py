"""`turret agent-register`, beside a live broker."""

import json
from pathlib import Path

import pytest
import trio

from broker.wire.jwk import thumbprint
from gateways.keyfile import load_key
from tests.gateways.client.live import Live
from tests.gateways.commands.conftest import Turret


@pytest.mark.requirement("cli.agent-register")
async def test_an_agent_is_registered_once_and_its_code_kept_for_its_owner_alone(
    live: Live, turret: Turret
) -> None:
    key = await trio.to_thread.run_sync(turret.key, "ann")
    made = await turret("agent-register", "Ann's quotes", "--key", key, "--wire", live.wire)
    assert (made.code, made.err) == (0, "")
    agent_id, code = made.out.splitlines()
    kept = trio.Path(f"{key}.agent")
    assert (await kept.stat()).st_mode & 0o777 == 0o600
    assert json.loads(await kept.read_text())["claim_code"] == code.removeprefix("claim code: ")
    again = await turret("agent-register", "Another", "--key", key, "--json")
    assert again.json["agent_id"] == agent_id
    assert "registered already, as Ann's quotes" in again.err
    document = await live.broker._services.store.get("key", load_key(Path(key)).pk)
    assert document is not None
    assert json.loads(document.doc)["kid"] == thumbprint(load_key(Path(key)).pk)


@pytest.mark.requirement("cli.agent-register")
async def test_a_name_that_is_taken_is_one_line(live: Live, turret: Turret) -> None:
    for name in ("ann", "bob"):
        key = await trio.to_thread.run_sync(turret.key, name)
        ran = await turret("agent-register", "Ann", "--key", key, "--wire", live.wire)
    assert ran.code == 1
    assert ran.err.startswith("turret: already_exists: ")
    assert turret.files("*.agent") == ["ann.key.agent"]


def test_it_needs_a_key(turret: Turret) -> None:
    ran = turret.run("agent-register", "Ann")
    assert ran.code == 2
    assert "--key" in ran.err

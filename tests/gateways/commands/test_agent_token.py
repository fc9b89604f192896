"""`turret agent-token`, beside a live broker."""

import stat

import pytest
import trio

from tests.gateways.client.live import Live
from tests.gateways.commands.conftest import Turret


@pytest.mark.requirement("cli.agent-token")
async def test_a_token_is_got_by_the_key_and_serves_in_a_file(live: Live, turret: Turret) -> None:
    key = await trio.to_thread.run_sync(turret.key, "ann")
    unknown = await turret("agent-token", "--key", key)
    assert (unknown.code, "turret agent-register" in unknown.err) == (1, True)
    made = await turret("agent-register", "ann", "--key", key, "--wire", live.wire, "--json")
    out = trio.Path(f"{key}.token")
    ran = await turret("agent-token", "--key", key, "--out", str(out))
    assert (ran.code, ran.err) == (0, "")
    assert stat.S_IMODE((await out.stat()).st_mode) == 0o600
    token = (await out.read_text()).strip()
    assert token not in ran.out
    assert (await turret("whoami", "--token-file", str(out))).json["agent_id"] == made.json["agent_id"]
    assert (await turret("whoami", "--key", key)).json["agent_id"] == made.json["agent_id"]
    shown = await turret("agent-token", "--key", key, "--agent", made.json["agent_id"])
    assert (len(shown.out.split(".")), shown.out != token + "\n") == (3, True)


@pytest.mark.requirement("cli.agent-token")
async def test_who_is_none_of_the_agents_gets_one_line(live: Live, turret: Turret) -> None:
    key = await trio.to_thread.run_sync(turret.key, "ann")
    ran = await turret("agent-token", "--key", key, "--agent", "ag_" + "0" * 26)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("turret: unauthenticated: no token: invalid_client")
    assert ran.err.count("\n") == 1

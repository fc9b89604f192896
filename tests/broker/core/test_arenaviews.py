"""What is shown of a session: whose points, what may be done, and nothing that is hidden."""

from typing import Any

import msgspec
import pytest

from broker.core import arena as core
from broker.core.arenaviews import Account, account_of, artifact_at, brief, outcome, show
from broker.core.chance import Secret
from broker.core.games import hilo

SECRET = Secret("11" * 32, "22" * 32)
AGENT = "ag_01JZABCDEFGHJKMNPQRSTVWXYZ"


def live_of(**config: Any) -> core.Live:
    event = core.open_session(
        hilo,
        hilo.Config(**config),
        "simulation",
        secret=SECRET,
        agent_id=AGENT,
        number=0,
        client_seed="mine",
        balance=100,
        opening=100,
    )
    return core.replay(hilo, [event])


def row_of(**members: Any) -> core.SessionRow:
    return core.SessionRow(
        **{
            "session_id": "as_1",
            "agent_id": AGENT,
            "game": "hilo",
            "game_version": 1,
            "mode": "simulation",
            "sealed": "55" * 32,
            "balance": 100,
            "net": 0,
            "opened_at": 1,
            "changed_at": 2,
            **members,
        }
    )


@pytest.mark.requirement("arena.qualified")
def test_every_balance_says_whose_it_is() -> None:
    assert account_of(row_of(), 7) == Account("simulation", "session:as_1", 7)
    assert account_of(row_of(mode="persistent"), 7) == Account("persistent", f"agent:{AGENT}", 7)


@pytest.mark.requirement("arena.hidden")
def test_what_is_shown_of_an_open_session_has_no_part_of_what_is_hidden() -> None:
    text = msgspec.json.encode([show(hilo, row_of(), live_of(), 100), brief(row_of(), 100)])
    for hidden in (SECRET.seed, SECRET.salt, row_of().sealed):
        assert hidden.encode() not in text


def test_a_session_that_is_over_shows_its_secret_and_where_it_is_published() -> None:
    live = live_of()
    live = core.fold(hilo, live, core.Acted({"type": "stop"}, 100, ended=core.ended(live, SECRET, "stopped")))
    shown = show(hilo, row_of(over="stopped", ref="ab"), live, 100)
    assert (shown.status, shown.over, shown.seed, shown.salt) == ("over", "stopped", SECRET.seed, SECRET.salt)
    assert shown.legal_actions == []
    assert shown.artifact == artifact_at("ab")
    assert shown.artifact is not None
    assert shown.artifact.uri == "kestrel://artifact/ab"


def test_an_outcome_says_what_the_player_won_or_lost() -> None:
    live = live_of()
    shown = show(hilo, row_of(), live, 100)
    assert outcome(core.Acted({}, 95, None, (("house", 5), ("player", -5))), shown).change == -5
    assert outcome(core.Acted({}, 100), shown).change == 0

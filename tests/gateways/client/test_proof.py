"""An artifact against what the player saw: the same, and each way in which it may differ."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from broker.core import arena as core
from broker.core import chance
from broker.core.games import hilo
from gateways.client.errors import WireFault
from gateways.client.proof import Answered, Chosen, Ending, Played, Proof, check, commit_of

SECRET = chance.Secret("5e" * 32, "5a" * 32)
AGENT = "ag_01JZ6M5VQW8T3N4R2P7X9Y0ABC"
Doc = dict[str, Any]


def finished() -> tuple[list[core.Event], dict[int, Answered]]:
    """The events of a session of two calls and a stop, and the answers to them."""
    config = hilo.Config(client_seed="mine")
    opened = core.open_session(
        hilo,  # type: ignore[arg-type]  # a module is a game
        config,
        "simulation",
        secret=SECRET,
        agent_id=AGENT,
        number=7,
        client_seed="mine",
        balance=1000,
        opening=1000,
    )
    shoe = hilo.deal(config, chance.Draws(SECRET.seed, chance.domain_of("hilo", 1), "mine"))
    events: list[core.Event] = [opened]
    answers = {}
    wanted = [{"type": "call", "stake": 9, "guess": hilo.judge(shoe[n], shoe[n + 1])} for n in range(2)]
    for action in [*wanted, {"type": "stop"}]:
        live = core.replay(hilo, events)  # type: ignore[arg-type]
        event = core.act(hilo, live, shoe, SECRET, live.version, action, live.balance)  # type: ignore[arg-type]
        assert isinstance(event, core.Acted)
        events.append(event)
        change = sum(points for account, points in event.entries if account == "player")
        answers[live.version + 1] = Answered(action, event.facts, change)
    return events, answers


EVENTS, ANSWERED = finished()
CONTENT = core.artifact_of(EVENTS)
COMMIT = chance.commit_of(SECRET, AGENT, 7)
PLAYED = msgspec.convert(msgspec.to_builtins(EVENTS[0]), Played)
ENDING = Ending("stopped", SECRET.seed, SECRET.salt)
CHOSEN = Chosen(COMMIT, "mine")


def judge(content: bytes, **other: Any) -> Proof:
    """The proof of these bytes under their own name."""
    given: dict[str, Any] = {
        "played": PLAYED,
        "ending": ENDING,
        "chosen": CHOSEN,
        "answered": ANSWERED,
        **other,
    }
    return check(hashlib.sha256(content).hexdigest(), content, **given)


@pytest.mark.requirement("client.arena-verify")
def test_it_is_what_was_seen(tmp_path: Path) -> None:
    proof = judge(CONTENT)
    assert (proof.foreseen, proof.revealed, proof.content) == (True, True, CONTENT)
    proof.save(tmp_path / "session.json")
    assert (tmp_path / "session.json").read_bytes() == CONTENT
    assert judge(CONTENT, chosen=None, answered={}).foreseen is False
    with pytest.raises(WireFault, match="another hash"):
        check("0" * 64, CONTENT, PLAYED, ENDING, CHOSEN, ANSWERED)
    with pytest.raises(WireFault, match="the one from before"):
        judge(CONTENT, chosen=CHOSEN._replace(client_seed="theirs"))


@pytest.mark.requirement("client.arena-verify")
def test_the_commit_is_made_as_the_page_says() -> None:
    assert commit_of(SECRET.seed, SECRET.salt, AGENT, 7) == COMMIT


def set_in(*path: str | int, to: Any) -> Callable[[Doc], None]:
    """Change one member of an artifact."""

    def change(artifact: Doc) -> None:
        place: Any = artifact
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = to

    return change


def give_more(artifact: Doc) -> None:
    """Another history of the same length and sum."""
    for n, points in ((1, 1), (2, -1)):
        for entry in artifact["events"][n]["entries"]:
            entry[1] += points if entry[0] == "player" else -points


@pytest.mark.requirement("client.arena-verify")
@pytest.mark.parametrize(
    ("change", "why"),
    [
        (set_in("kind", to="turret.trial"), "no session"),
        (set_in("format", to=2), "no session"),
        (set_in("events", 0, "type", to="acted"), "no session"),
        (set_in("events", 0, "agent_id", to="ag_" + "0" * 26), "not the session"),
        (set_in("events", 0, "client_seed", to="theirs"), "not the session"),
        (set_in("events", 0, "commit", to="00" * 32), "not the session"),
        (set_in("events", 0, "config", "decks", to=2), "not the session"),
        (set_in("events", 1, "action", "stake", to=8), "action 1"),
        (set_in("events", 2, "facts", "card", to="??"), "action 2"),
        (give_more, "action 1"),
        (lambda artifact: artifact["events"].pop(2), "action"),
        (set_in("events", 3, "ended", "over", to="bust"), "ended in another way"),
        (set_in("events", 3, "ended", "seed", to="00" * 32), "ended in another way"),
        (set_in("result", "net", to=0), "sum of its actions"),
        (set_in("events", to="none"), "can't be read"),
        (set_in("events", to=[]), "can't be read"),
        (set_in("events", 1, "entries", to=7), "can't be read"),
    ],
)
def test_what_differs_is_refused(change: Callable[[Doc], Any], why: str) -> None:
    artifact = msgspec.json.decode(CONTENT)
    change(artifact)
    with pytest.raises(WireFault, match=why):
        judge(msgspec.json.encode(artifact))


@pytest.mark.requirement("client.arena-verify")
@pytest.mark.parametrize("seed", ["5f" * 32, "no hex"])
def test_a_secret_that_does_not_make_the_commit_is_refused(seed: str) -> None:
    artifact = msgspec.json.decode(CONTENT)
    artifact["events"][-1]["ended"]["seed"] = seed
    with pytest.raises(WireFault, match="seed and salt"):
        judge(msgspec.json.encode(artifact), ending=Ending("stopped", seed, SECRET.salt))
    hidden = msgspec.json.decode(CONTENT)
    hidden["events"][-1]["ended"] = {"over": "stopped"}
    assert judge(msgspec.json.encode(hidden), ending=Ending("stopped")).revealed is False

"""The comparison compares: each peer that can be had is given signed envelopes, and every answer is checked.

No time is asserted. Peers that need the extra `compare` are tested where it is installed.
"""

import asyncio
import json
import os
import socket
from pathlib import Path

import pytest

from bench import compare
from bench.compare import Failed, Found, Run
from bench.kit.machine import family
from bench.peers import catalogue, side
from bench.peers.catalogue import PEERS, lacking
from bench.peers.chains import Chain, read_chains, sign_chain, write_chains
from bench.peers.ledger import FILE, Heads, Refused, Store
from bench.peers.load import Load, Talk
from bench.peers.side import Told
from bench.peers.stored import missing
from broker.wire.chain import verify_transcript

PLAIN = [name for name in PEERS if name != "turret-helper"]
"""Those whose broker needs no setting."""


@pytest.fixture(scope="module")
def chain() -> Chain:
    return sign_chain(0, 6, 1_800_000_000)


def run_of(per_s: float) -> Run:
    return Run(
        envelopes_per_s=per_s,
        ratio_to_verify=0.5,
        p50_ms=1.0,
        p99_ms=2.0,
        cpu_us=100.0,
        rss_mib=50.0,
        load_cpu_us=20.0,
        others_cores=0.1,
    )


@pytest.mark.parametrize("name", PLAIN)
def test_a_tiny_run_has_figures_of_each_peer_or_says_why_not(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--json", "--seconds", "0.2", "--runs", "1", "--conversations", "3", "--only", name]
    before = family(os.getpid())
    assert compare.main(options) == 0
    assert set(family(os.getpid())) <= set(before), "no process of a peer outlives it"
    said = capsys.readouterr()
    report = json.loads(said.out.splitlines()[-1])
    [figure] = report["figures"]
    assert (figure["peer"], report["conversations"]) == (name, 3)
    if lacking(PEERS[name]) is None:
        assert figure["envelopes_per_s"] > 0
        assert figure["p99_ms"] >= figure["p50_ms"] > 0
        assert figure["rss_mib"] > 1
        assert PEERS[name].title in said.out
    else:
        assert "turret[compare]" in figure["skipped"]
        assert "SKIPPED" in said.out


def test_no_process_of_a_peer_outlives_it_where_it_has_some() -> None:
    with catalogue.started(PEERS["turret-helper"]) as server:
        processes = family(server.pid)
        assert server.pid in processes
    assert [pid for pid in processes if Path(f"/proc/{pid}").exists()] == []


def test_the_broker_and_the_official_server_need_nothing_extra() -> None:
    assert [name for name in ("turret", "turret-mcp", "sdk") if lacking(PEERS[name])] == []


def test_what_is_not_installed_is_named_with_the_extra_that_brings_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(catalogue.importlib.util, "find_spec", lambda name: None)  # type: ignore[attr-defined]
    assert lacking(PEERS["nats"]) == "not installed: nats, uvloop; pip install 'turret[compare]'"


def test_a_server_that_does_not_start_is_skipped_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = catalogue.Peer(name="broken", title="Broken", client="sdk", server="no_such_server")
    monkeypatch.setitem(PEERS, "broken", broken)
    [row] = compare.figures(compare.measure(["broken"], 0.05, 1, 2))
    assert "no_such_server" in row["skipped"]
    assert "Broken: SKIPPED, it does not run" in compare.report_table([row])


def test_a_peer_that_loses_what_it_acknowledged_has_failed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def lossy(*_: object) -> dict[str, object]:
        raise Failed("acknowledged, and not in the store: 3")

    monkeypatch.setattr(compare, "_load", lossy)
    assert compare.main(["--only", "sdk", "--runs", "1", "--seconds", "0.05", "--conversations", "1"]) == 1
    assert "FAILED, acknowledged, and not in the store: 3" in capsys.readouterr().out


def test_turret_is_compared_run_by_run_and_not_beyond_the_runs_that_both_had() -> None:
    ours, other = Found(PEERS["turret"]), Found(PEERS["nats"])
    ours.runs = {0: run_of(4000), 1: run_of(9000), 2: run_of(6000)}
    other.runs = {0: run_of(2000), 2: run_of(2000)}
    assert compare.ahead(other, ours) == 2.5
    assert compare.ahead(other, None) is None
    rows = compare.figures([ours, other])
    assert [row["turret_ahead"] for row in rows] == [1.0, 2.5]
    assert "2.50" in compare.report_table(rows)


def test_the_table_is_written_between_its_marks_and_nowhere_else(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text("# Measurements\n\nfirst\n")
    compare.write(page, "a table")
    page.write_text(page.read_text() + "\nwritten by hand\n")
    compare.write(page, "another table")
    text = page.read_text()
    assert text.startswith("# Measurements\n\nfirst\n\n" + compare.HEADING)
    assert "another table" in text
    assert "a table" not in text
    assert text.endswith("\nwritten by hand\n")


@pytest.mark.parametrize("options", [["--only", "kafka"], ["--seconds", "0"], ["--runs", "0"]])
def test_options_that_make_no_sense_are_refused(options: list[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        compare.main(options)


def test_chains_are_conversations_that_prove_themselves(tmp_path: Path) -> None:
    write_chains(tmp_path / "chains", 2, 5)
    for chain in read_chains(tmp_path / "chains"):
        rows = [
            {"n": n, "sig": sig, "envelope": json.loads(text), "chain": hash_}
            for n, (sig, text, hash_) in enumerate(zip(chain.sigs, chain.texts, chain.hashes, strict=True))
        ]
        assert verify_transcript(rows).ok
        assert all(550 < len(text) < 650 for text in chain.texts[2:])


class Deaf:
    """A side that sends into the void."""

    def __init__(self) -> None:
        self.socket = socket.socket()

    def send(self, n: int) -> None:
        pass

    def receive(self) -> list[Told]:
        return []

    def close(self) -> None:
        self.socket.close()


def test_acknowledgements_and_arrivals_count_once_and_in_their_order(chain: Chain) -> None:
    sides = Deaf(), Deaf()
    talk = Talk(chain, sides)
    talk.send()
    with pytest.raises(RuntimeError, match="was due"):
        talk.acknowledged(1, 1)  # not sent
    with pytest.raises(RuntimeError, match="was due"):
        talk.arrives(0, 0)  # at its own sender
    talk.arrives(1, 0)
    with pytest.raises(RuntimeError, match="was due"):
        talk.arrives(1, 0)  # again
    assert talk.under_way
    talk.acknowledged(0, 0)
    with pytest.raises(RuntimeError, match="was due"):
        talk.acknowledged(0, 0)  # again
    assert not talk.under_way
    talk.send()
    assert talk.under_way
    for each in sides:
        each.close()


def test_a_load_that_counted_nothing_has_no_result(chain: Chain) -> None:
    with pytest.raises(RuntimeError, match="no envelope was acknowledged"):
        Load([], 1.0, 0).result()


def test_the_ledger_takes_the_next_envelope_alone_and_only_when_it_is_signed(chain: Chain) -> None:
    heads = Heads()
    with pytest.raises(Refused, match="conflict"):
        heads.accept(chain.texts[1], chain.sigs[1])
    with pytest.raises(Refused):
        heads.accept(chain.texts[0], chain.sigs[1])
    with pytest.raises(Refused):
        heads.accept(b"{}", chain.sigs[0])
    assert [heads.accept(chain.texts[n], chain.sigs[n]).n for n in range(3)] == [0, 1, 2]


def test_what_was_acknowledged_is_looked_for_in_the_store(chain: Chain, tmp_path: Path) -> None:
    async def append(count: int) -> None:
        store = Store(tmp_path / FILE)
        writer = asyncio.create_task(store.run())
        rows = [(chain.conv, n, chain.sigs[n], chain.texts[n]) for n in range(count)]
        await asyncio.gather(*(store.append(row) for row in rows))
        writer.cancel()
        store.close()

    asyncio.run(append(3))
    assert missing("", tmp_path, [chain], [3]) == []
    [lost] = missing("", tmp_path, [chain], [4])
    assert "4 acknowledged, 3 stored" in lost
    assert missing("", tmp_path, [chain], [2]) != []  # nothing else may be there


def test_a_wrong_signature_in_the_store_is_seen(chain: Chain) -> None:
    found = {chain.conv: {0: chain.sigs[0], 1: chain.sigs[0]}}
    assert "[1]" in side.compare(found, [chain], [2])[0]

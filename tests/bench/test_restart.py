"""The benchmark of restarts, with a short history and few clients. No time is asserted."""

import argparse
import json
from collections import deque
from pathlib import Path

import pytest

from bench import restart, storm
from bench.history import Party
from bench.kit.websocket import Lost
from bench.storm import Returning

TINY = ["--envelopes", "600", "--clients", "6", "--behind", "40", "--runs", "1", "--seconds", "0.1", "--json"]


def test_a_tiny_run_starts_three_times_and_all_come_back(capsys: pytest.CaptureFixture[str]) -> None:
    assert restart.main(TINY) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (report["ok"], report["errors"]) == (True, [])
    assert [each["start"] for each in report["starts"]] == [
        "1,000 envelopes",
        "600 envelopes",
        "after SIGKILL",
    ]
    assert all(each["serving_s"] > 0 and each["rss_mib"] > 10 for each in report["starts"])
    assert (report["storm"]["clients"], report["storm"]["events"]) == (6, 240)
    assert report["storm"]["caught_up_p99_ms"] >= report["storm"]["greeted_p50_ms"] > 0


def test_an_event_that_is_not_the_one_that_was_written_fails_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def altered(broker: object, clients: list[Returning], options: argparse.Namespace) -> None:
        clients[2].missed[20] = b"0" * 64
        return real(broker, clients, options)  # type: ignore[arg-type,return-value]

    real = restart.come_back
    monkeypatch.setattr(restart, "come_back", altered)
    assert restart.main(TINY) == 1
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert "holds another envelope" in report["errors"][0]


class Fake:
    """What a client has read."""

    def __init__(self, *data: bytes) -> None:
        self.data = deque(data)

    def recv(self, _most: int) -> bytes:
        return self.data.popleft()


def returning(*data: bytes) -> Returning:
    party = Party("AAAB", 3)
    party.newest = 9
    party.chains.extend(b"%064d" % at for at in (7, 8, 9))
    client = Returning(party, "tag.epoch.9")
    client._socket = Fake(b"HTTP/1.1 101 Switching\r\n\r\n", *data)  # type: ignore[assignment]
    client.take()
    return client


def event(position: int, chain: int) -> bytes:
    text = b'{"method":"env","params":{"cursor":"tag.epoch.%d","chain":"%064d"}}' % (position, chain)
    return b"\x81\x7e" + len(text).to_bytes(2, "big") + text


def test_a_client_goes_on_after_the_cursor_that_it_has() -> None:
    client = returning(event(7, 7) + event(8, 8)[:50], event(8, 8)[50:])
    assert client.after == "tag.epoch.6"
    assert not client.take()
    assert not client.take()
    assert (client.after, client.got) == ("tag.epoch.8", 2)


@pytest.mark.parametrize(
    ("events", "why"),
    [
        (event(7, 7) + event(9, 9), "came where tag.epoch.8 was due"),
        (event(7, 7) + event(7, 7), "came where tag.epoch.8 was due"),
        (event(7, 8), "holds another envelope"),
        (event(7, 7) + event(8, 8) + event(9, 9) + event(10, 10), "came where"),
        (b"", "was closed"),
        (b"\x88\x02\x03\xf4", "closed: 1012"),
    ],
    ids=["gap", "repeat", "other", "beyond", "end", "close"],
)
def test_a_gap_a_repeat_and_an_end_are_found(events: bytes, why: str) -> None:
    with pytest.raises(Lost, match=why):
        returning(events).take()


def test_a_stream_that_stands_elsewhere_is_found_at_once() -> None:
    with pytest.raises(Lost, match="stands at 8"):
        Returning(Party("AAAB", 3), "tag.epoch.8")


def test_a_broker_that_is_not_there_ends_the_storm() -> None:
    client = Returning(Party("AAAB", 3), "tag.epoch.0")
    with pytest.raises(Lost, match="cannot connect"):
        storm.storm("ws://127.0.0.1:1", [client])
    client.close()


def test_the_store_leaves_the_cache_and_stays_whole(tmp_path: Path) -> None:
    (tmp_path / "turret.db").write_bytes(b"kept")
    restart.forget(tmp_path)
    assert (tmp_path / "turret.db").read_bytes() == b"kept"


def test_numbers_that_make_no_sense_are_refused() -> None:
    with pytest.raises(SystemExit):
        restart.main(["--clients", "1"])

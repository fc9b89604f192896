"""The benchmark of many readers, with few of them for a moment. No time is asserted."""

import json
import socket

import pytest

from bench import fan, fanout
from bench.fanout import Row, compare
from bench.followers import SseFollower, WebSocketFollower
from bench.kit.websocket import Lost

TINY = ["--followers", "1", "3", "--seconds", "0.05", "--json"]


def test_a_tiny_run_has_a_row_for_each_shape_and_way(capsys: pytest.CaptureFixture[str]) -> None:
    assert fanout.main(TINY) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (report["ok"], report["errors"]) == (True, [])
    assert [(each["shape"], each["over"], each["followers"]) for each in report["rows"]] == [
        *[("one", over, count) for over in fanout.OVER for count in (1, 3)],
        *[("many", over, 3) for over in fanout.OVER],
    ]
    assert all(each["events"] > 0 and each["deliveries_per_s"] > 0 for each in report["rows"])
    assert all(each["ack_p50_ms"] > 0 for each in report["rows"])


def test_a_channels_followers_have_a_row_for_each_way(capsys: pytest.CaptureFixture[str]) -> None:
    assert fanout.main([*TINY, "--channel", "--over", "dealing", "sse"]) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (report["ok"], report["errors"]) == (True, [])
    assert [(each["shape"], each["over"], each["followers"]) for each in report["rows"]] == [
        ("channel", over, count) for over in ("dealing", "sse") for count in (1, 3)
    ]
    assert all(each["events_per_s"] > 0 and each["whole_p99_ms"] > 0 for each in report["rows"])


@pytest.mark.parametrize(
    ("over", "given"),
    [("dealing", ["--shapes", "one"]), ("sse", ["--shapes", "one"]), ("ws", ["--channel"])],
)
def test_an_event_that_a_follower_did_not_get_fails_the_benchmark(
    over: str, given: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = SseFollower if over == "sse" else WebSocketFollower
    real = kind.take
    taken = 0

    def forgetful(self: SseFollower | WebSocketFollower) -> list[bytes]:
        nonlocal taken
        found = real(self)  # type: ignore[arg-type]
        taken += len(found)
        return found[1:] if taken >= 3 else found

    monkeypatch.setattr(kind, "take", forgetful)
    monkeypatch.setattr(fan, "SILENCE_S", 0.5)
    assert fanout.main([*TINY, "--over", over, *given]) == 1
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert report["ok"] is False
    assert f"{given[-1].removeprefix('--')}, {over}" in report["errors"][0]


def stream(*chunks: bytes) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)


def test_events_of_sse_are_whole_however_they_are_cut() -> None:
    follower = SseFollower.__new__(SseFollower)
    follower.rest = follower._text = b""
    data = stream(b": ping\n\n", b"event: env\nid: 1\ndata: {}\n\nevent: env\n", b"data: {2}\n\n")
    found = [event for at in range(len(data)) for event in follower.split(follower.rest + data[at : at + 1])]
    assert found == [b"event: env\nid: 1\ndata: {}", b"event: env\ndata: {2}"]
    with pytest.raises(Lost, match="was closed"):
        follower.split(stream(b"event: closed\ndata: {}\n\n"))


def test_events_of_websocket_are_whole_however_they_are_cut() -> None:
    follower = WebSocketFollower.__new__(WebSocketFollower)
    follower.rest = b""
    data = b"\x81\x02{}" + b"\x81\x03{2}"
    found = [event for at in range(len(data)) for event in follower.split(follower.rest + data[at : at + 1])]
    assert found == [b"{}", b"{2}"]
    with socket.socket() as follower.socket, pytest.raises(Lost, match="closed: 4008"):
        follower.split(b"\x88\x02\x0f\xa8")


def test_what_one_more_follower_costs_is_told_against_the_fewest() -> None:
    rows = [
        Row(
            shape="one", over="ws", followers=count, deliveries_per_s=1.0, cpu_us_per_event=cost,
            cpu_us_per_delivery=cost / count, ack_p50_ms=1.0, idle_p50_ms=1.0, idle_p99_ms=1.0, full_p50_ms=1.0,
            full_p99_ms=1.0, lag_p99_ms=1.0, events=1,
        )
        for count, cost in ((1, 100.0), (11, 200.0))
    ]  # fmt: skip
    compare(rows)
    assert [each.cpu_us_per_further for each in rows] == [None, 10.0]

"""How the WebSocket suite's cases become a verdict and a part of the page, and that the echo is one."""

from datetime import date
from pathlib import Path
from typing import Any

import pytest
import trio
from websockets.frames import Opcode

from gateways import dealing, frames
from tests.conformance import echo, websocket
from tests.conformance.page import page, with_websocket
from tests.conformance.verdict import Verdict
from tests.conformance.websocket import CASES, verdict
from tests.support.broker_fake import FakeBroker
from tests.support.ws import masked, open_port


def cases(**changed: str) -> dict[str, dict[str, Any]]:
    """As many good cases as there are, some changed: their behavior by name."""
    found = {f"c{at}": {"behavior": "OK", "behaviorClose": "OK", "duration": 1} for at in range(CASES)}
    for name, behavior in changed.items():
        found[name]["behavior"] = behavior
    return found


def test_what_the_suite_lets_pass_is_counted_apart() -> None:
    found = verdict("a port", cases(c1="NON-STRICT", c2="INFORMATIONAL", c3="NON-STRICT"))
    assert (found.passed, found.total, found.good) == (CASES, CASES, True)
    assert found.remarks == ("NON-STRICT: c1, c3", "INFORMATIONAL: c2")


@pytest.mark.parametrize("behavior", ["FAILED", "WRONG CODE", "UNCLEAN", "FAILED BY CLIENT", "UNIMPLEMENTED"])
@pytest.mark.parametrize("which", ["behavior", "behaviorClose"])
def test_anything_else_is_a_fault(behavior: str, which: str) -> None:
    found = cases()
    found["c7"][which] = behavior
    judged = verdict("a port", found)
    assert (judged.passed, judged.good, len(judged.faults)) == (CASES - 1, False, 1)
    assert judged.faults[0].startswith("c7: ")


def test_cases_that_did_not_run_are_not_passed() -> None:
    lost = cases()
    del lost["c1"]
    assert not verdict("a port", lost).good
    found = verdict("a port", {}, "it said this")
    assert (found.passed, found.good) == (0, False)
    assert "it said this" in found.faults[0]


def test_without_a_python27_the_page_says_skipped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(websocket, "python27", lambda: None)
    target = tmp_path / "conformance.md"
    target.write_text("# Conformance\n")
    assert websocket.main(target) == 0
    assert "| both ports | SKIPPED: no python2.7 |" in target.read_text()


def test_its_part_of_the_page_takes_the_place_of_the_former_one() -> None:
    start = page([Verdict(judge="j@1", what="x", passed=1, total=1)], date(2026, 1, 2))
    bad = verdict("a port", cases(c7="FAILED"))
    once = with_websocket(start, [bad], date(2026, 1, 3))
    assert once.startswith(start)
    assert "- autobahntestsuite@25.10.1, a port: all cases but 12.*, 13.*: c7: FAILED, close OK" in once
    again = with_websocket(once, [verdict("a port", cases())], date(2026, 1, 4))
    assert again.count("## WebSocket") == 1
    assert "Last run on 2026-01-04" in again
    assert "c7" not in again


async def test_the_echo_sends_back_text_and_binary_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in ((dealing, "Session"), (dealing, "Messages"), (frames, "FRAGMENTS")):
        monkeypatch.setattr(module, name, getattr(module, name))  # put back after the test
    echo.echoing()
    sent = [
        (Opcode.TEXT, "a text: é".encode()),
        (Opcode.BINARY, b"\xff\x00"),
        (Opcode.TEXT, b""),
        (Opcode.BINARY, b""),
    ]
    async with open_port(FakeBroker()) as port:
        stream = await port.connect()
        await stream.send_all(
            b"GET / HTTP/1.1\r\nhost: a\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
            b"sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n\r\n"
        )
        expected = b"".join(bytes([0x80 | opcode, len(data)]) + data for opcode, data in sent)
        got = b""
        with trio.fail_after(5):
            while b"\r\n\r\n" not in got:
                got += await stream.receive_some(4096)
            await stream.send_all(b"".join(masked(data, opcode) for opcode, data in sent))
            got = got.partition(b"\r\n\r\n")[2]
            while len(got) < len(expected):
                got += await stream.receive_some(4096)
        assert got == expected

"""The demo as a person runs it: three processes, a deal, its proof, and nothing left behind."""

import io
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gateways.client.verify import verify_file
from gateways.demo.show import DEFAULT_SEED, Stage, forge, run_demo
from tests.gateways.client.test_transcript import DEAL


def test_the_demo_shows_a_deal_proves_it_and_finds_the_forgery(tmp_path: Path) -> None:
    out = io.StringIO()
    assert run_demo(tmp_path / "kept", DEFAULT_SEED, out) == 0
    shown = out.getvalue()
    types = re.findall(r"^   [\d:.]+  \w{4} → \w{4}\s+\d+  ([A-Z]+)", shown, re.MULTILINE)
    assert types[:3] == ["CALL", "PICKUP", "RFQ"]
    assert types[-4:] == ["HIT", "CONFIRM", "CONFIRM", "END"]
    assert re.search(r"^   brav    ag_\w{26}  registered itself; its desk is BRAV$", shown, re.MULTILINE)
    assert "✓ alfa ends the agreement" in shown
    assert "✓ verified offline" in shown
    assert "is refused at that step" in shown
    assert str(tmp_path / "kept") in shown
    assert "\x1b[" not in shown
    verdict = verify_file(tmp_path / "kept" / "deal.jsonl")
    assert verdict.ok
    assert verdict.rows == len(types)
    broken = verify_file(tmp_path / "kept" / "forged.jsonl").broken
    assert broken is not None
    assert f"in envelope {broken.n})" in shown


def test_a_directory_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    out = io.StringIO()
    assert run_demo(tmp_path, 1, out) == 2
    assert os.listdir(tmp_path) == ["mine"]


def test_a_broker_that_does_not_start_is_told_with_its_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = io.StringIO()
    monkeypatch.setenv("TURRET_LIMITS_RINGZ", "1")
    assert run_demo(tmp_path / "kept", 1, out) == 1
    assert "demo_failed: broker ended with exit code 2" in out.getvalue()
    assert "ringz" in out.getvalue().lower()


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_a_signal_in_the_middle_leaves_nothing_running(tmp_path: Path) -> None:
    arguments = [sys.executable, "-u", "-m", "gateways.demo", "--keep", str(tmp_path / "kept")]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if "ALFA    " in line:
                break
        process.send_signal(signal.SIGTERM)
        rest = process.stdout.read()
        assert process.wait(20) in (0, 130)
    # the session's group is gone with its last process; a dealt demo is as good as a stopped one
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
    assert "stopped" in rest or "verified" in rest


def lines() -> list[bytes]:
    return [
        b'{"n":%d,"sig":"%s","envelope":%s}' % (row["n"], row["sig"].encode(), row["canonical"].encode())
        for row in DEAL
    ]


@pytest.mark.parametrize("seed", range(8))
def test_a_forgery_changes_one_byte_and_breaks_where_it_says(tmp_path: Path, seed: int) -> None:
    whole = b"".join(line + b"\n" for line in lines())
    n, text, change = forge(lines(), seed)
    assert sum(a != b for a, b in zip(whole, text, strict=True)) == 1
    assert "→" in change
    (tmp_path / "forged").write_bytes(text)
    broken = verify_file(tmp_path / "forged").broken
    assert broken is not None
    assert (broken.n, broken.code) == (n, "bad_signature")


def test_colours_are_for_terminals() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    out = Terminal()
    stage = Stage(out)
    stage.title(1, "Title")
    stage.good("fine")
    assert stage.colour
    assert "\x1b[32m✓" in out.getvalue()

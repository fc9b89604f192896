"""The offline verifier: a file in, a verdict out, in words and as JSON."""

import json
from pathlib import Path
from typing import Any

import pytest

from gateways.client.verify import MAX_LINE, as_json, report, verify_file
from tests.gateways.client.test_transcript import DEAL, VALID, WIRE


def write(path: Path, rows: list[dict[str, Any]], **changes: Any) -> Path:
    """An export of these rows; the file's text is the verifier's business alone."""
    lines = [
        json.dumps({"n": row["n"], "sig": row["sig"], "envelope": row["envelope"], **changes}) for row in rows
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.requirement("client.verify")
def test_a_whole_transcript_holds(tmp_path: Path) -> None:
    verdict = verify_file(write(tmp_path / "deal.jsonl", DEAL))
    assert (verdict.ok, verdict.rows) == (True, len(DEAL))
    words = report(verdict)
    assert words.startswith(f"holds: {len(DEAL)} envelopes of conversation {DEAL[0]['envelope']['conv']}")
    assert "times unproven" in words
    assert DEAL[0]["envelope"]["from"] in words


@pytest.mark.requirement("client.verify")
@pytest.mark.parametrize("n", range(len(DEAL)))
def test_the_first_broken_step_is_named(tmp_path: Path, n: int) -> None:
    rows = [dict(row) for row in DEAL]
    rows[n] = {**rows[n], "envelope": {**rows[n]["envelope"], "ts": rows[n]["envelope"]["ts"] + 1}}
    verdict = verify_file(write(tmp_path / "deal.jsonl", rows))
    assert verdict.broken is not None
    assert (verdict.broken.n, verdict.broken.code) == (n, "bad_signature")
    assert report(verdict).startswith(f"broken at n = {n} (line {n + 1}): bad_signature")


def test_the_wires_end_needs_the_wires_key(tmp_path: Path) -> None:
    rows = VALID["ended_by_the_wire"]["rows"]
    path = write(tmp_path / "ended.jsonl", rows)
    named = rows[0]["envelope"]["body"].get("wire")
    verdict = verify_file(path, (WIRE,))
    assert verdict.ended_by_wire
    assert "ended by the wire" in report(verdict)
    assert verify_file(path).ok == (named is not None)


def test_an_open_call_is_told_as_open(tmp_path: Path) -> None:
    assert "open: no END yet" in report(verify_file(write(tmp_path / "open.jsonl", DEAL[:4])))


def test_a_verdict_is_plain_json(tmp_path: Path) -> None:
    verdict = verify_file(write(tmp_path / "deal.jsonl", DEAL))
    assert json.loads(json.dumps(as_json(verdict)))["rows"] == len(DEAL)


@pytest.mark.parametrize(
    "data", [b"", b"\n\n", b"no", b"{}\n", b"\xff\xfe\n", b"[" * 9000 + b"\n", b"0" * (MAX_LINE + 9)]
)
def test_any_file_gets_a_verdict(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "odd"
    path.write_bytes(data)
    verdict = verify_file(path)
    assert verdict.broken is not None
    assert verdict.broken.n == 0
    assert report(verdict).isprintable() or "\n" in report(verdict)


def test_a_missing_file_is_the_callers_business(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        verify_file(tmp_path / "none")

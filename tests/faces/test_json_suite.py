"""JSONTestSuite's n_ files through every face: as the whole body or frame, as params, and as the envelope."""

from pathlib import Path
from typing import Any

import pytest

from tests.faces.conftest import VECTORS, Door

N_FILES = sorted((VECTORS / "jsontestsuite" / "test_parsing").glob("n_*.json"))


def test_the_suite_is_there() -> None:
    assert len(N_FILES) == 188


@pytest.mark.requirement("refusals.json-suite")
@pytest.mark.parametrize("batch", range(8))
def test_each_n_file_is_a_typed_refusal_and_the_door_stays_open(batch: int, door: Door) -> None:
    for file in N_FILES[batch::8]:
        bad = file.read_bytes()
        judge(door.raw(bad), bad, file)
        params = b'{"conv":"a1b2c3d4e5f6a7b8","n":2,"from_pk":"%s","sig":"%s","envelope":%s}' % (
            b"a" * 64,
            b"b" * 128,
            bad,
        )
        judge(door.call("send_env", params), params, file)
    assert "wire" in door.call("wire_info", b"{}")


def judge(answer: dict[str, Any], text: bytes, file: Path) -> None:
    """A typed refusal; a WebSocket closes with 1009 above 64 KiB, and with 1007 for what is not UTF-8 (RFC 6455)."""
    if "closed" in answer:
        too_large = len(text) > 65_536
        assert answer["closed"] == (1009 if too_large else 1007), file.name
        assert too_large or not is_utf8(text), file.name
    elif "malformed" in answer:
        assert answer["malformed"] in (-32700, -32600), (file.name, answer)
    else:
        assert answer["refusal"]["code"] in ("bad_request", "bad_envelope", "too_large"), (file.name, answer)


def is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True

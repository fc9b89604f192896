"""`turret artifact`: fetched from a real broker, and written only where the hash is right."""

import hashlib
from collections.abc import AsyncIterator

import pytest
import trio

from gateways.web import web_app
from tests.gateways.commands.conftest import Turret
from tests.support.artifacts import damage, publish_one
from tests.support.broker import Bench
from tests.support.network import serving


@pytest.fixture
async def published(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[str, bytes]]:
    """An artifact's ref and bytes, at a broker that TURRET_URL names."""
    async with serving(web_app(bench.broker, None)) as server:
        found = await publish_one(bench)
        monkeypatch.setenv("TURRET_URL", server.url)
        yield found


@pytest.mark.requirement("artifact.command")
async def test_an_artifact_is_written_as_it_is(turret: Turret, published: tuple[str, bytes]) -> None:
    ref, content = published
    ran = await turret("artifact", ref)
    assert (ran.code, ran.out.encode(), ran.err) == (0, content, "")
    ran = await turret("artifact", f"kestrel://artifact/{ref}", "--out", "session.json", "--json")
    assert ran.json == {"ref": ref, "bytes": len(content), "file": "session.json"}
    assert hashlib.sha256(await trio.Path("session.json").read_bytes()).hexdigest() == ref


@pytest.mark.requirement("artifact.command", "artifact.intact")
async def test_what_can_not_be_had_leaves_no_file(
    turret: Turret, published: tuple[str, bytes], bench: Bench
) -> None:
    ref, _ = published
    await damage(bench, ref)
    for name, code, words in (
        (ref, 1, "turret: unavailable: "),
        ("0" * 64, 1, "turret: NOT_FOUND: there is no such artifact"),
        ("0" * 63, 2, "turret: usage: an artifact's ref is 64 lowercase hex characters"),
    ):
        ran = await turret("artifact", name, "--out", "session.json")
        assert (ran.code, ran.out) == (code, "")
        assert ran.err.startswith(words)
    assert turret.files("*.json") == []

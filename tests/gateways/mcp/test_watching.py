"""What wakes a watcher of the wire's resources, and who may be one."""

import pytest
import trio

from broker.app import Caller
from broker.wire.ids import Pk
from broker.wire.refusals import Refusal
from gateways.mcp.surface import Ask, Missing, Updates
from gateways.mcp.watching import watcher
from tests.support.broker import Bench, Party, open_bench, tuned


def asking(party: Party | None) -> Ask:
    return Ask(caller=Caller(pk=Pk(party.pk) if party else None), revision="2026-07-28", meta={})


async def opened(bench: Bench, party: Party, uri: str) -> Updates:
    source = await watcher(bench.broker)(asking(party), uri)
    assert isinstance(source, Updates)
    return source


async def quiet(source: Updates) -> bool:
    with trio.move_on_after(1):
        await source.changed()
        return False
    return True


@pytest.mark.requirement("mcp.watch")
async def test_a_ring_wakes_the_watcher_of_the_desks_rings_and_nothing_else_does(
    bench: Bench, autojump_clock: object
) -> None:
    alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
    async with await opened(bench, brav, "turret://desk/BRAV/rings") as source:
        line = await bench.dial(alfa, brav)
        assert await source.changed()
        await line.send("PICKUP")
        await bench.dial(brav, alfa)
        assert await quiet(source)


@pytest.mark.requirement("mcp.watch")
async def test_an_envelope_wakes_the_watcher_of_its_conversation_alone(
    bench: Bench, autojump_clock: object
) -> None:
    alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
    first, second = await bench.connect(alfa, brav), await bench.connect(alfa, brav)
    async with await opened(bench, alfa, f"turret://conv/{first.conv}") as source:
        await second.send("SAY", {"text": first.conv, "conv": first.conv})
        assert await quiet(source)
        for type in ("SAY", "END"):
            await first.send(type, {})
            assert await source.changed()


async def test_watching_makes_the_desk_online(bench: Bench) -> None:
    brav = await bench.open("BRAV")
    async with await opened(bench, brav, "turret://desk/BRAV/rings"):
        assert (await bench.call("resolve_code", code="BRAV"))["online"] is True


@pytest.mark.requirement("mcp.watch-rights")
async def test_only_the_owner_of_the_stream_may_watch_its_rings(bench: Bench) -> None:
    await bench.open("BRAV")
    carl = await bench.open("CARL")
    watch = watcher(bench.broker)
    nobody = await watch(asking(None), "turret://desk/BRAV/rings")
    stranger = await watch(asking(carl), "turret://desk/BRAV/rings")
    assert isinstance(nobody, Refusal)
    assert isinstance(stranger, Refusal)
    assert (nobody.code, stranger.code) == ("unauthenticated", "not_a_party")


@pytest.mark.requirement("mcp.watch-rights", "mcp.watch")
@pytest.mark.parametrize("who", [None, "CARL"])
async def test_whoever_holds_the_id_of_an_open_transcript_may_watch_it(
    bench: Bench, autojump_clock: object, who: str | None
) -> None:
    alfa, brav = await bench.open("ALFA"), await bench.open("BRAV")
    first, second = await bench.connect(alfa, brav), await bench.connect(alfa, brav)
    party = await bench.open(who) if who else None
    source = await watcher(bench.broker)(asking(party), f"turret://conv/{first.conv}")
    assert isinstance(source, Updates)
    async with source:
        await second.send("SAY", {})
        assert await quiet(source)
        for type in ("SAY", "END"):
            await first.send(type, {})
            assert await source.changed()
        if who:
            assert (await bench.call("resolve_code", code=who))["online"] is False


@pytest.mark.requirement("mcp.watch-rights")
async def test_a_transcript_of_the_parties_alone_is_watched_by_them_and_is_missing_for_others() -> None:
    async with open_bench(tuned(transcripts="parties")) as bench:
        alfa, brav, carl = await bench.open("ALFA"), await bench.open("BRAV"), await bench.open("CARL")
        line = await bench.connect(alfa, brav)
        uri = f"turret://conv/{line.conv}"
        watch = watcher(bench.broker)
        for party in (None, carl):
            assert await watch(asking(party), uri) == Missing(uri)
        async with await opened(bench, alfa, uri) as source:
            await line.send("SAY", {})
            with trio.fail_after(5):
                assert await source.changed()
            assert (await bench.call("resolve_code", code="ALFA"))["online"] is True


@pytest.mark.parametrize(
    "uri", ["turret://desk/NOPE/rings", "turret://conv/00000000000000aa", "turret://desk/BRAV", "x", ""]
)
async def test_what_is_not_there_can_not_be_watched(bench: Bench, uri: str) -> None:
    brav = await bench.open("BRAV")
    assert await watcher(bench.broker)(asking(brav), uri) == Missing(uri)


async def test_the_end_of_the_right_ends_the_watching(bench: Bench) -> None:
    brav = await bench.open("BRAV")
    async with await opened(bench, brav, "turret://desk/BRAV/rings") as source:
        closing = brav.statement("close_desk", bench.broker.pk, bench.ts, code="BRAV")
        assert not isinstance(await bench.call("close_desk", **closing), Refusal)
        with trio.fail_after(5):
            assert await source.changed() is False

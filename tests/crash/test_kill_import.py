"""SIGKILL in the middle of an import: nothing of the tape is seen, and the same import goes on where it was."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio

from broker.core.tapes.catalog import log_of, parts_of
from broker.core.tapes.tape import Tape
from broker.store import sqlite_file
from gateways.client.errors import Disconnected
from gateways.client.signer import join_params
from gateways.commands.admin import Place, operators
from gateways.commands.check import beside_of, look_through
from tests.support.imports import foreign
from tests.support.operators import TOKEN
from tests.support.process import Served, served

TAPE = foreign(ticks=5_000)


async def ask(broker: Served, tool: str, **params: Any) -> Any:
    async with operators(Place(url=broker.ready["operator"], token=TOKEN)) as mcp:
        return msgspec.json.decode(await mcp.call(tool, join_params(params), 10))


async def bring(broker: Served, tape: Tape) -> Any:
    """As `turret tape import` does."""
    parts = list(parts_of(tape))
    for n, part in enumerate(parts):
        if (await ask(broker, "send_tape_rows", ref=tape.ref(), part=n, rows=part.decode()))["here"]:
            break
    return await ask(broker, "import_tape", ref=tape.ref(), parts=len(parts), title="t", licence="l")


@pytest.mark.requirement("catalog.killed")
@pytest.mark.timeout(90)
async def test_a_broker_that_is_killed_has_all_of_a_tape_or_nothing(tmp_path: Path) -> None:
    data, token = tmp_path / "data", tmp_path / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    flags = ("--operator-token-file", str(token), "--operator-bind", "127.0.0.1:0")
    assert len(list(parts_of(TAPE))) == 3
    for die_at, seen in ((2, False), (0, True)):
        environment = {"DIE_AT": str(die_at)}
        async with served(
            data, *flags, environment=environment, program="tests.crash.dying_import"
        ) as broker:
            with pytest.raises(Disconnected), trio.fail_after(20):
                await bring(broker, TAPE)
            await broker.process.wait()
        found = look_through(data / sqlite_file.FILE, True, beside_of(data))
        assert found.ok, found
        async with served(data, *flags) as broker:
            refs = [each["ref"] for each in (await ask(broker, "list_tapes"))["entries"]]
            assert (TAPE.ref() in refs) == seen
            if not seen:  # what was durable is known again
                again = list(parts_of(TAPE))[1].decode()
                told = await ask(broker, "send_tape_rows", ref=TAPE.ref(), part=1, rows=again)
                assert told == {"ref": TAPE.ref(), "part": 1, "here": False}
            if seen:
                assert (await bring(broker, TAPE))["index"] == 100
            assert await broker.stop() == 0
    found = look_through(data / sqlite_file.FILE, True, beside_of(data))
    assert found.ok, found
    assert log_of(TAPE.ref(), 0).startswith("tape:")

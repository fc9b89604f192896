"""`turret tape`: a CSV file is checked and imported, or its first wrong line is named."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from broker.app import Missed
from broker.core.tapes import catalog
from broker.core.tapes.csvfile import to_csv
from broker.core.tapes.synthetic import KINDS, SEED, make
from gateways.commands.tape import _called
from gateways.operator.server import operator_app
from gateways.operator.token import OperatorToken
from tests.gateways.commands.conftest import Turret
from tests.support.broker import Bench, open_bench
from tests.support.imports import URL, Files
from tests.support.network import serving
from tests.support.operators import OPERATOR, TOKEN

ABOUT = ("--instrument", "EURUSD", "--tick", "0.00001")
HEAD = "time,bid,ask\n"


def csv(ticks: int = 40) -> str:
    rows = (f"{1_772_443_800_000 + 1000 * n},1.08{n % 7}2,1.08{n % 7}4\n" for n in range(ticks))
    return HEAD + "".join(rows)


@pytest.fixture
def file(turret: Turret) -> Path:
    path = turret.directory / "a-day.csv"
    path.write_text(csv())
    return path


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with open_bench() as found:
        yield found


@pytest.fixture
async def port(bench: Bench, turret: Turret, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[str]:
    """The operators' port of a live broker, which the environment names."""
    token = turret.directory / "operators.token"
    token.write_text(TOKEN + "\n")
    token.chmod(0o600)
    async with serving(operator_app(bench.broker, OperatorToken(TOKEN))) as served:
        monkeypatch.setenv("TURRET_OPERATOR_URL", served.url)
        monkeypatch.setenv("TURRET_OPERATOR_TOKEN_FILE", str(token))
        yield served.url


@pytest.mark.requirement("catalog.command")
async def test_a_file_is_imported_in_parts_listed_and_removed(
    turret: Turret, bench: Bench, port: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalog, "PART", 200)
    made = await turret(
        "tape", "import", str(file), *ABOUT, "--fee", "0.000002", "--licence", "CC0-1.0", "--json"
    )
    assert (made.code, made.err) == (0, "")
    entry = made.json
    assert (entry["index"], entry["title"], entry["ticks"], entry["fee"]) == (100, "a-day", 40, 2)
    row = await bench.store.get("tape", entry["ref"])
    assert row is not None
    assert b'"parts":1' not in row.doc
    checked = turret.run("tape", "check", str(file), *ABOUT, "--fee", "0.000002", "--json")
    assert checked.json["ref"] == entry["ref"]
    again = await turret("tape", "import", str(file), *ABOUT, "--fee", "0.000002", "--title", "other")
    assert (again.code, "already" in again.err, "a-day" in again.out) == (0, True, True)
    listed = await turret("tape", "list")
    assert [line.split()[0] for line in listed.out.splitlines()] == ["0", "1", "2", "3", "100"]
    assert {len(line.split()[1]) for line in listed.out.splitlines()} == {64}, "as remove takes it"
    removed = await turret("tape", "remove", entry["ref"])
    assert removed.out == f"removed {entry['ref']}\n"
    assert (await turret("tape", "remove", entry["ref"])).code == 1
    assert len((await bench.call("list_tapes", OPERATOR))["entries"]) == 4


HEADER = ("--header", "Authorization: Bearer ${FEED}")


@pytest.mark.requirement("tape.source-command", "tape.source-secrets")
async def test_a_url_is_fetched_by_the_broker_with_a_secret_that_it_keeps(
    turret: Turret, bench: Bench, port: str
) -> None:
    files = Files(bench, csv().encode())
    asked = ("tape", "import", URL, *ABOUT, *HEADER)
    told = await turret(*asked)
    assert (told.code, "set_secret" in told.err, files.asked) == (1, True, [])
    value = turret.directory / "feed.token"
    value.write_text("planted")
    kept = await turret("admin", "set-secret", "--name", "FEED", "--value", f"@{value}")
    assert (kept.code, "planted" in kept.out) == (0, False)
    made = await turret(*asked, "--fee", "0.000002", "--json")
    assert (made.code, made.err) == (0, "")
    assert (made.json["index"], made.json["title"], made.json["fee"]) == (100, "a-day", 2)
    assert files.asked == [(URL, {"authorization": "Bearer planted"})]


@pytest.mark.requirement("tape.source-command", "tape.source-refused")
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (csv(3).encode() + b"planted,1,2\n", "line 5: the time is none"),
        (Missed("status", 401), "the source refuses (HTTP 401)"),
        (Missed("redirect", 302), "it leads elsewhere"),
    ],
)
async def test_what_a_url_does_not_give_is_told_in_a_line(
    turret: Turret, bench: Bench, port: str, answer: bytes | Missed, words: str
) -> None:
    Files(bench, answer)
    told = await turret("tape", "import", URL, *ABOUT)
    assert (told.code, told.out, told.err.count("\n"), "planted" in told.err) == (1, "", 1, False)
    assert words in told.err
    for wrong in ("http://feed.example/x", "https://feed.example:99/x"):
        told = await turret("tape", "import", wrong, *ABOUT)
        assert (told.code, "https://, on port 443" in told.err) == (1, True)


@pytest.mark.requirement("tape.source-command")
def test_headers_are_for_urls_and_a_wrong_one_is_not_shown(turret: Turret, file: Path) -> None:
    told = turret.run("tape", "import", str(file), *ABOUT, *HEADER)
    assert (told.code, "--header is for a URL" in told.err) == (2, True)
    for wrong in (("--header", "planted"), (*HEADER, "--header", "Authorization: planted")):
        told = turret.run("tape", "import", URL, *ABOUT, *wrong)
        assert (told.code, "--header, number" in told.err, "planted" in told.err) == (2, True, False)


@pytest.mark.parametrize(
    ("source", "title"),
    [
        (Path("-"), "tape"),
        (Path("/a/a-day.csv"), "a-day"),
        (URL, "a-day"),
        ("https://x.example/", "tape"),
        ("https://x.example?a=b.csv", "tape"),
    ],
)
def test_a_tape_is_called_as_its_file(source: Path | str, title: str) -> None:
    assert _called(source) == title


@pytest.mark.requirement("catalog.command")
def test_a_good_file_is_told_by_its_ref(turret: Turret, file: Path) -> None:
    told = turret.run("tape", "check", str(file), *ABOUT)
    assert (told.code, told.err) == (0, "")
    assert told.out.startswith("EURUSD: 40 ticks of 1000 ms, without sizes\nref: ")


@pytest.mark.requirement("catalog.command", "tape.import")
@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("time;bid;ask\n", 1, "a bad header"),
        (csv(3) + "1772443802000,1.08,1.09\n", 5, "stands there twice"),
        (csv(3) + "1772443809000,1.08,1.09\n", 5, "a gap"),
        (csv(3) + "1772443801000,1.08,1.09\n", 5, "unsorted"),
        (csv(3) + "1772443803000,1.09,1.08\n", 5, "a crossed book"),
        (csv(3) + "2026-03-02T09:30:03,1.08,1.09\n", 5, "has no zone"),
        (csv(3) + '1772443803000,"1,080.5",1.09\n', 5, "separators between its digits"),
        (csv(3) + "1772443803000,1.080001,1.09\n", 5, "no whole number of ticks"),
        (csv(3) + "\udcff\n", 5, "not UTF-8"),
    ],
)
def test_the_first_wrong_line_is_named_and_nothing_is_sent(
    turret: Turret, file: Path, monkeypatch: pytest.MonkeyPatch, text: str, line: int, words: str
) -> None:
    file.write_bytes(text.encode(errors="surrogateescape"))
    token = turret.directory / "none"
    for command in (("check",), ("import", "--operator-token-file", str(token))):
        told = turret.run("tape", command[0], str(file), *ABOUT, *command[1:])
        assert (told.code, told.out, told.err.count("\n")) == (1, "", 1)
        assert told.err.startswith(f"turret: no_tape: {file}:{line}: ")
        assert words in told.err


@pytest.mark.requirement("catalog.command")
def test_what_is_said_wrong_of_a_file_names_no_line(turret: Turret, file: Path) -> None:
    told = turret.run("tape", "check", str(file), "--instrument", "EURUSD", "--tick", "1e-5")
    assert (told.code, f"{file}: tick and fee" in told.err) == (1, True)
    told = turret.run("tape", "check", str(file), "--instrument", "EUR USD", "--tick", "0.00001")
    assert (told.code, f"{file}: an instrument" in told.err) == (1, True)
    assert turret.run("tape", "check", str(file)).code == 2
    assert turret.run("tape", "check", str(file.with_name("none.csv")), *ABOUT).code == 2


@pytest.mark.requirement("catalog.command")
async def test_a_seeded_tape_is_written_as_a_file_that_can_be_imported(turret: Turret) -> None:
    made = await turret("tape", "make", "thin", "--seed", "3", "--ticks", "20")
    assert made.code == 0, made.err
    assert made.err.startswith("20 ticks; to check or import them: --instrument USDSEK")
    file = turret.directory / "thin.csv"
    file.write_text(made.out)
    facts = made.err.partition(": ")[2].split()
    checked = await turret("tape", "check", str(file), *facts, "--json")
    assert json.loads(checked.out)["ref"] == make(KINDS["thin"], 3, 20).ref()
    same = await turret("tape", "make", "thin", "--ticks", "2")
    assert same.out == "".join(to_csv(make(KINDS["thin"], SEED, 2))), "without a seed as the catalog has it"
    for wrong in (("flat",), ("thin", "--ticks", "1")):
        told = await turret("tape", "make", *wrong)
        assert (told.code, "trend" in told.err or "--ticks" in told.err) == (2, True)

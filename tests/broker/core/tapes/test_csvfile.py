"""A CSV file is a tape, or its first wrong line is named."""

import pytest

from broker.core.tapes.csvfile import MAX_LINE, Complaint, CsvReader, decimal, read_csv, to_csv
from broker.core.tapes.synthetic import KINDS, make
from broker.core.tapes.tape import MICRO, Tape

HEAD = "time,bid,ask\n"
GOOD = [
    "2026-03-02T09:30:00Z,1.08419,1.08421\n",
    "2026-03-02T09:30:01Z,1.08420,1.08421\n",
    "2026-03-02T09:30:02Z,1.08420,1.08422\n",
]


def read(text: str, tick: str = "0.00001", fee: str = "0.000002") -> Tape | Complaint:
    return read_csv(text.encode(), instrument="EURUSD", tick=tick, fee=fee)


def of(*lines: str, head: str = HEAD) -> Tape | Complaint:
    return read(head + "".join(lines))


@pytest.mark.requirement("tape.import")
def test_a_file_is_a_tape_in_whole_ticks() -> None:
    tape = of(*GOOD)
    assert isinstance(tape, Tape)
    assert (list(tape.bids), list(tape.asks)) == ([108419, 108420, 108420], [108421, 108421, 108422])
    assert (tape.about.start, tape.about.step) == (1_772_443_800_000, 1000)
    assert (tape.about.tick, tape.about.fee, tape.about.sized) == (10, 2, False)
    assert tape.about.tick * 100_000 == MICRO


@pytest.mark.requirement("tape.import")
def test_order_of_columns_zones_and_units_of_time_make_no_difference() -> None:
    plain = of(*GOOD)
    assert isinstance(plain, Tape)
    ms = [1_772_443_800_000 + 1000 * n for n in range(3)]
    others = [
        "\ufeffASK, Bid ,time\r\n"
        + "".join(f"{ask},{bid},{time}\r\n" for time, bid, ask in (line.strip().split(",") for line in GOOD)),
        HEAD + "".join(line.replace("09:30", "10:30").replace("Z", "+01:00") for line in GOOD),
        HEAD + "".join(f"{at},{line.split(',', 1)[1]}" for at, line in zip(ms, GOOD, strict=True)),
        HEAD + "".join(f'"{line.split(",")[0]}",{line.split(",", 1)[1]}' for line in GOOD),
    ]
    for text in others:
        tape = read(text)
        assert isinstance(tape, Tape), tape
        assert tape.ref() == plain.ref()


@pytest.mark.requirement("tape.import")
def test_with_its_zone_a_time_is_itself_in_the_hour_that_stands_there_twice() -> None:
    times = ("2026-10-25T02:59:59+02:00", "2026-10-25T02:00:00+01:00", "2026-10-25T01:00:01Z")
    tape = of(*(f"{time},{line.split(',', 1)[1]}" for time, line in zip(times, GOOD, strict=True)))
    assert isinstance(tape, Tape), tape
    assert (tape.about.start, tape.about.step) == (1_792_889_999_000, 1000)


@pytest.mark.requirement("tape.import")
def test_sizes_are_kept() -> None:
    tape = of(*(line.strip() + ",1000000\n" for line in GOOD), head="time,bid,ask,size\n")
    assert isinstance(tape, Tape)
    assert list(tape.sizes) == [1_000_000] * 3


@pytest.mark.requirement("tape.import-errors")
@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", 0, "no column time"),
        ("bid,ask\n", 1, "no column time"),
        ("time;bid;ask\n", 1, "separated by commas"),
        ("time\tbid\task\n", 1, "separated by commas"),
        ("time,bid,ask,volume\n", 1, "'volume' is no column"),
        ("time,bid,ask,bid\n", 1, "twice"),
        (HEAD, 1, "two ticks"),
        (HEAD + GOOD[0], 2, "two ticks"),
        (HEAD + GOOD[1] + GOOD[0], 3, "unsorted"),
        (HEAD + GOOD[0] + GOOD[1] + GOOD[0], 4, "unsorted"),
        (HEAD + GOOD[0] + GOOD[0], 3, "twice"),
        (HEAD + GOOD[0] + GOOD[1] + GOOD[1], 4, "twice"),
        (HEAD + GOOD[0] + GOOD[1] + GOOD[2].replace(":02Z", ":05Z"), 4, "3 ticks of 1000 ms are missing"),
        (HEAD + GOOD[0] + GOOD[1] + GOOD[2].replace(":02Z", ":02.5Z"), 4, "1500 ms after"),
        (HEAD + GOOD[0].replace("1.08419", "1.08430") + GOOD[1], 2, "crossed book"),
        (HEAD + GOOD[0].replace("Z", ""), 2, "no zone"),
        (HEAD + "2026-10-25T02:30:00,1,2\n", 2, "when the clocks change"),
        (HEAD + "03/02/2026 09:30,1,2\n", 2, "is none: write"),
        (HEAD + "2026-03-02T09:30:00.0001Z,1,2\n", 2, "finer than a millisecond"),
        (HEAD + '2026-03-02T09:30:00Z,"1,084.19",1\n', 2, "separators"),
        (HEAD + "2026-03-02T09:30:00Z,1'084.19,1\n", 2, "separators"),
        (HEAD + "2026-03-02T09:30:00Z,1.08419,\n", 2, "the ask ''"),
        (HEAD + "2026-03-02T09:30:00Z,1e0,1\n", 2, "the bid '1e0'"),
        (HEAD + "2026-03-02T09:30:00Z,-1,1\n", 2, "the bid '-1'"),
        (HEAD + "2026-03-02T09:30:00Z,nan,1\n", 2, "the bid 'nan'"),
        (HEAD + "2026-03-02T09:30:00Z,1.084195,1.1\n", 2, "no whole number of ticks"),
        (HEAD + "2026-03-02T09:30:00Z,0,1.1\n", 2, "not from 1"),
        (HEAD + "2026-03-02T09:30:00Z,1.1\n", 2, "2 fields"),
        (HEAD + "2026-03-02T09:30:00Z,1.1,1.2,1000\n", 2, "4 fields, and the header has 3"),
        (HEAD + "2026-03-02T09:30:00Z,9,10000001\n", 2, "the ask 10000001 is not from 1 to"),
        (HEAD + GOOD[0] + "\n" + GOOD[1], 3, "0 fields"),
        (HEAD + '2026-03-02T09:30:00Z,"1.1,1.2\n', 2, "not CSV"),
        ("time,bid,ask,size\n2026-03-02T09:30:00Z,1,2,1.5\n", 2, "the size '1.5'"),
        ("time,bid,ask,size\n2026-03-02T09:30:00Z,1,2,9999999999999\n", 2, "above"),
    ],
)
def test_the_first_wrong_line_is_named_with_what_is_wrong(text: str, line: int, words: str) -> None:
    complaint = read(text)
    assert isinstance(complaint, Complaint)
    assert complaint.line == line
    assert words in complaint.message


@pytest.mark.requirement("tape.import-errors")
def test_the_first_tick_that_is_too_many_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("broker.core.tapes.csvfile.MAX_TICKS", 3)
    assert isinstance(of(*GOOD), Tape)
    wrong = of(*GOOD, GOOD[2].replace(":02Z", ":03Z"))
    assert isinstance(wrong, Complaint)
    assert (wrong.line, wrong.message) == (5, "a tape has at most 3 ticks")


SECRET = "zX9-secret"
GOOD_FILE = HEAD + "".join(GOOD)


@pytest.mark.requirement("tape.import-errors")
@pytest.mark.parametrize(
    "text",
    [
        f"time,bid,ask,{SECRET}\n",
        f"{SECRET}\n",
        HEAD + f"{SECRET},1,2\n",
        HEAD + f"2026-03-02T09:30:00Z,{SECRET},2\n",
        HEAD + f"2026-03-02T09:30:00Z,1,{SECRET}\n",
        f"time,bid,ask,size\n2026-03-02T09:30:00Z,1,2,{SECRET}\n",
        HEAD + f'2026-03-02T09:30:00Z,"1"{SECRET},2\n',
        HEAD + f"2026-03-02T09:30:00Z,1,2,{SECRET}\n",
        *(HEAD + f"2026-03-02T09:30:00Z,{number},8\n" for number in ("9.1234567", "9,876.5", "9.5", "0")),
        HEAD + "2026-03-02T09:30:00.9876Z,1,2\n",
        HEAD + "2026-03-02T09:30:09.876,1,2\n",
        "time,bid,ask,size\n2026-03-02T09:30:00Z,1,2,9876543210987\n",
    ],
)
def test_what_is_wrong_is_told_without_the_files_own_words_too(text: str) -> None:
    complaint = read(text)
    assert isinstance(complaint, Complaint)
    assert complaint.plain
    for word in (SECRET, SECRET.lower(), "secret", "9.", "987", "876", "%s"):
        assert word not in complaint.plain


@pytest.mark.requirement("tape.import", "tape.import-errors")
@pytest.mark.parametrize(
    "text",
    [
        GOOD_FILE,
        "\ufeff" + GOOD_FILE.replace("\n", "\r\n"),
        GOOD_FILE.replace("\n", "\r"),
        GOOD_FILE[:-1],
        GOOD_FILE + "é",
        GOOD_FILE + "\n",
        GOOD_FILE + '"2026\n03",1,2\n',
        GOOD_FILE + '"2026',
        GOOD_FILE + '"2026\n03"x,1,2\n',
        GOOD_FILE + '"2026"x,1,2\n',
        HEAD + GOOD[1] + GOOD[0] + "é,1,2\n",
    ],
)
def test_where_a_file_is_cut_makes_no_difference(text: str) -> None:
    def told(found: Tape | Complaint) -> object:
        return found.ref() if isinstance(found, Tape) else found

    content = text.encode()
    whole = told(read(text))
    for size in (1, 2, 3, 7, 50):
        reader = CsvReader(instrument="EURUSD", tick="0.00001", fee="0.000002")
        pieces = (content[at : at + size] for at in range(0, len(content), size))
        wrong = next(filter(None, map(reader.feed, pieces)), None)
        assert told(wrong or reader.end()) == whole, size


@pytest.mark.requirement("tape.import-errors")
def test_what_is_no_text_or_has_no_lines_is_not_kept() -> None:
    assert read_csv(GOOD_FILE.encode() + b"\xff,1,2\n", instrument="X", tick="0.00001") == Complaint(
        5, "not UTF-8 text", "not UTF-8 text"
    )
    reader = CsvReader(instrument="X", tick="1")
    assert reader.feed(b"x" * MAX_LINE) is None
    wrong = reader.feed(b"x")
    assert wrong is not None
    assert (wrong.line, reader.feed(HEAD.encode()), reader.end()) == (1, wrong, wrong)


@pytest.mark.parametrize(("tick", "fee"), [("0", "0"), ("1e-5", "0"), ("0.0000001", "0"), ("0.01", "-1")])
def test_tick_and_fee_are_decimals_of_at_most_six_digits(tick: str, fee: str) -> None:
    complaint = read(HEAD, tick, fee)
    assert isinstance(complaint, Complaint)
    assert complaint.line == 0


@pytest.mark.requirement("tape.import")
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_as_csv_is_read_as_the_same_tape(kind: str) -> None:
    made = make(KINDS[kind], 7, 50)
    about = made.about
    content = "".join(to_csv(made)).encode()
    found = read_csv(content, instrument=about.instrument, tick=decimal(about.tick), fee=decimal(about.fee))
    assert isinstance(found, Tape), found
    assert found.ref() == made.ref()

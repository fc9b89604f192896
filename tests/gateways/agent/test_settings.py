"""Rails out of a file and a command line; what can't be read stops the agent."""

from decimal import Decimal
from pathlib import Path

import pytest

from gateways.agent.rails import Rails
from gateways.agent.settings import Given, make_rails, read_caps, read_file

PK = "a1" * 32
FILE = f"""
counterparties = ["BRAV", "{PK}"]
types = ["RFQ", "HIT", "CONFIRM"]
ask_before = ["HIT"]
code = "ALFA"

[caps]
qty = "5000000"
px = 2
"""


def written(directory: Path, text: str) -> Path:
    path = directory / "agent.toml"
    path.write_text(text)
    return path


@pytest.mark.requirement("agent.settings")
def test_a_file_gives_all_rails(tmp_path: Path) -> None:
    assert make_rails(read_file(written(tmp_path, FILE)), Given()) == Rails(
        counterparties=frozenset({"BRAV", PK}),
        types=frozenset({"RFQ", "HIT", "CONFIRM"}),
        ask_before=frozenset({"HIT"}),
        caps={"qty": Decimal(5_000_000), "px": Decimal(2)},
        code="ALFA",
    )


@pytest.mark.requirement("agent.settings")
def test_the_command_line_stands_in_place_of_the_file_and_caps_are_merged(tmp_path: Path) -> None:
    line = Given(
        counterparties=["ECHO"], ask_before=["CONFIRM"], caps=read_caps(["px=3", "notional=1e9"]), code="ZULU"
    )
    rails = make_rails(read_file(written(tmp_path, FILE)), line)
    assert rails.counterparties == {"ECHO"}
    assert rails.types == {"RFQ", "HIT", "CONFIRM"}
    assert rails.ask_before == {"CONFIRM"}
    assert rails.caps == {"qty": Decimal(5_000_000), "px": Decimal(3), "notional": Decimal(10**9)}
    assert rails.code == "ZULU"


@pytest.mark.requirement("agent.settings")
def test_the_rules_of_the_how_to_are_rules(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "let-a-model-deal.md").read_text()
    rails = make_rails(read_file(written(tmp_path, page.split("```toml\n")[1].split("```")[0])), Given())
    assert rails.shown() == {
        "counterparties": ["BRAV", "ECHO"],
        "types": ["CONFIRM", "HIT", "RFQ"],
        "caps": {"qty": "5000000"},
        "ask_before": ["HIT"],
        "code": "ALFA",
    }


def test_nothing_given_allows_everything_and_an_empty_list_nothing() -> None:
    assert make_rails(Given(), Given()) == Rails()
    assert make_rails(Given(counterparties=[], types=[]), Given()) == Rails(
        counterparties=frozenset(), types=frozenset()
    )


@pytest.mark.requirement("agent.settings")
@pytest.mark.parametrize(
    "text",
    [
        'counterparty = ["BRAV"]',
        'counterparties = "BRAV"',
        "caps = 5",
        "[caps]\nqty = 5.5",
        "[caps]\nqty = true",
        "code = 1",
        "not toml",
    ],
)
def test_a_file_that_is_not_understood_is_refused_with_its_name(tmp_path: Path, text: str) -> None:
    with pytest.raises(ValueError, match=r"agent\.toml: "):
        read_file(written(tmp_path, text))


@pytest.mark.requirement("agent.settings")
@pytest.mark.parametrize(
    "given",
    [
        Given(counterparties=["brav"]),
        Given(counterparties=["BRAVO"]),
        Given(counterparties=[PK.upper()]),
        Given(types=["rfq"]),
        Given(ask_before=["HIT "]),
        Given(ask_before=["END"]),
        Given(code="alfa"),
        Given(caps={"qty": "5M"}),
        Given(caps={"qty": "-1"}),
        Given(caps={"": "1"}),
    ],
)
def test_a_setting_of_a_wrong_form_is_refused(given: Given) -> None:
    for file, line in ((given, Given()), (Given(), given)):
        with pytest.raises(ValueError, match=r"capital|counterparty|END|number"):
            make_rails(file, line)


def test_a_cap_on_the_command_line_is_member_equals_amount() -> None:
    assert read_caps(["qty=5", "px=1.5"]) == {"qty": "5", "px": "1.5"}
    with pytest.raises(ValueError, match="MEMBER=AMOUNT"):
        read_caps(["qty"])

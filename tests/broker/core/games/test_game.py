"""What a module must have to be a game."""

from types import ModuleType
from typing import Any

import msgspec
import pytest

from broker.core.games import game, hilo, rfq
from broker.core.games.game import action_types, as_game


class _Untagged(msgspec.Struct):
    stake: int


class _Stop(msgspec.Struct, tag_field="type", tag="stop"):
    pass


class _Kind(msgspec.Struct, tag_field="kind", tag="call"):
    pass


def like_hilo(**others: Any) -> ModuleType:
    module = ModuleType("like_hilo")
    vars(module).update({**vars(hilo), **others})
    return module


@pytest.mark.requirement("games.named")
@pytest.mark.parametrize("module", [hilo, rfq])
def test_the_games_that_are_brought_along_are_games(module: ModuleType) -> None:
    assert as_game(module) is module


@pytest.mark.requirement("games.named")
@pytest.mark.parametrize(
    ("others", "words"),
    [
        ({"NAME": None}, "NAME is"),
        ({"NAME": "Hilo"}, "NAME is"),
        ({"NAME": "hilo\n"}, "NAME is"),
        ({"NAME": "x" * 17}, "NAME is"),
        ({"VERSION": 0}, "VERSION is"),
        ({"VERSION": True}, "VERSION is"),
        ({"VERSION": 10_001}, "VERSION is"),
        ({"TITLE": None}, "TITLE is a str"),
        ({"RULES": b""}, "RULES is a str"),
        ({"WAGER": None}, "WAGER is a dict"),
        ({"deal": None}, "no function deal"),
        ({"first": None}, "no function first"),
        ({"begin": None}, "no function begin"),
        ({"legal_actions": 1}, "no function legal_actions"),
        ({"apply": None}, "no function apply"),
        ({"fold": None}, "no function fold"),
        ({"observe": None}, "no function observe"),
        ({"Config": _Untagged}, "Config is a Common"),
        ({"Facts": dict}, "Facts is a Struct"),
        ({"State": None}, "State is a Struct"),
        ({"Action": None}, "Action is one tagged struct"),
        ({"Action": _Untagged}, "Action is one tagged struct"),
        ({"Action": _Kind}, "Action is one tagged struct"),
        ({"Action": rfq.Quote | _Stop}, "none of type 'stop'"),
        ({"Action": object()}, "Action is one tagged struct"),
    ],
)
def test_what_a_module_lacks_is_said(others: dict[str, Any], words: str) -> None:
    as_game(like_hilo())
    with pytest.raises(ValueError, match=words):
        as_game(like_hilo(**others))


def test_the_types_of_actions_are_those_of_the_struct_or_of_each_in_the_union() -> None:
    assert action_types(hilo.Action) == ("call",)
    assert sorted(action_types(rfq.Action)) == ["pass", "quote"]
    assert action_types(rfq.Quote | None) == ()


def test_what_all_games_have_in_their_config_is_no_other_than_the_page_says() -> None:
    assert set(game.Common.__struct_fields__) == {"client_seed", "commit", "points", "reveal"}
    for module in (hilo, rfq):
        assert issubclass(module.Config, game.Common)
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert({"pionts": 5}, module.Config)

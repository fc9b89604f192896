"""The settings: frozen, each with a unit or a sentence, defaults as wire.md has them."""

import ast
from pathlib import Path

import msgspec
import pytest

import broker.config
from broker.config import Settings


def test_settings_are_frozen() -> None:
    with pytest.raises(AttributeError):
        Settings().limits.rings = 3  # type: ignore[misc]  # that it can't be done is the point


@pytest.mark.requirement("limits.defaults")
def test_the_defaults_are_those_of_the_wire() -> None:
    settings = Settings()
    assert (settings.limits.envelopes, settings.limits.window_ms, settings.limits.conversations) == (
        30,
        10_000,
        8,
    )
    assert (settings.limits.rings, settings.limits.rings_per_address, settings.limits.rings_known) == (
        64,
        16,
        32,
    )
    assert (settings.calls.ring_s, settings.calls.idle_s, settings.calls.skew_s) == (30.0, 3600.0, 300)
    assert (settings.streams.ping_s, settings.streams.dead_s, settings.streams.comment_s) == (
        20.0,
        30.0,
        15.0,
    )
    assert settings.limits.frame_bytes == 65_536
    assert settings.store.min_free_bytes == 512 * 1024**2


def test_every_field_has_a_sentence() -> None:
    tree = ast.parse(Path(broker.config.__file__).read_text())
    for node in (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name != "Settings"):
        fields = [item for item in node.body if isinstance(item, ast.AnnAssign)]
        sentences = [item for item in node.body if isinstance(item, ast.Expr)]
        assert len(sentences) == len(fields) + 1, node.name


def test_settings_survive_a_round_trip() -> None:
    assert msgspec.convert(msgspec.to_builtins(Settings()), Settings) == Settings()

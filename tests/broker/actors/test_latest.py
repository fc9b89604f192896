"""A dictionary with a bound."""

from broker.actors.latest import Latest


def test_what_was_set_longest_ago_makes_room() -> None:
    latest = Latest[str, int](2)
    latest["a"], latest["b"] = 1, 2
    latest["a"] = 3
    latest["c"] = 4
    assert list(latest.items()) == [("a", 3), ("c", 4)]
    assert latest.get("b") is None
    assert latest.pop("a") == 3
    latest["d"] = 5
    assert list(latest) == ["c", "d"]

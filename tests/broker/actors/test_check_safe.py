"""What a check finds in secrets: nothing in those that the broker wrote, and each fault of the others."""

from typing import Any

import msgspec
import pytest

from broker.actors.check_safe import check_safe
from broker.actors.safe import OPERATORS, SafeActor
from broker.core.safe import Kept, SafeRow
from broker.store.port import Fault
from broker.wire.safekeys import SafeKeys

pytestmark = pytest.mark.requirement("trial.secret-check")
OWNER = "ow_01ARZ3NDEKTSV4RRFFQ69G5FAV"
KEYS, OTHER = SafeKeys([b"k" * 32]), SafeKeys([b"o" * 32])


def kept(name: str, holder: str = OWNER, keys: SafeKeys = KEYS) -> Kept:
    return Kept(name, keys.seal(holder, name, "a value", b"n" * 24), keys.current, 1, 2)


class Held:
    """A snapshot of secrets alone."""

    def __init__(self, doc: Any, holder: str = OWNER, marks: Any = (("all", "1"),)) -> None:
        self._found = msgspec.defstruct("Found", [("id", str), ("doc", bytes)])(
            holder, doc if isinstance(doc, bytes) else msgspec.json.encode(SafeRow(tuple(doc)))
        )
        self._marks = set(marks)

    def documents(self, kind: str) -> list[Any]:
        return [self._found]

    def marks(self, kind: str, id: str) -> Any:
        return self._marks


def look(held: Held, keys: SafeKeys | None = KEYS) -> tuple[int, int, list[str]]:
    ((count, unreadable, faults),) = check_safe(held, keys)  # type: ignore[arg-type]  # the part of a store that it asks
    assert all(isinstance(each, Fault) and "a value" not in each.message for each in faults)
    return count, unreadable, [each.message for each in faults]


def test_what_the_actor_writes_holds() -> None:
    assert look(Held([kept("A"), kept("B")])) == (2, 0, [])
    assert look(Held([kept("A", OPERATORS)], OPERATORS)) == (1, 0, [])
    assert SafeActor.index_of(SafeActor.__new__(SafeActor), SafeRow()) == (("all", "1"),)


def test_a_secret_whose_key_is_elsewhere_is_counted_and_no_fault() -> None:
    assert look(Held([kept("A"), kept("B", keys=OTHER)])) == (2, 1, [])
    assert look(Held([kept("A"), kept("B", keys=OTHER)]), None) == (2, 0, [])


@pytest.mark.parametrize(
    ("held", "said"),
    [
        (Held([kept("A", OWNER.replace("A", "B"))]), "A is not what was sealed here"),
        (Held([msgspec.structs.replace(kept("A"), name="B")]), "B is not what was sealed here"),
        (Held([msgspec.structs.replace(kept("A"), sealed="00")]), "A is not what was sealed here"),
        (Held([kept("B"), kept("A")]), "out of order"),
        (Held([kept("A"), kept("A")]), "out of order"),
        (Held([]), "has 0 secrets"),
        (Held([kept(f"A{n:02}") for n in range(65)]), "has 65 secrets"),
        (Held([kept("a")]), "1 of its secrets"),
        (Held([msgspec.structs.replace(kept("A"), created_at=3)]), "1 of its secrets"),
        (Held([kept("A")], marks=()), "is not found by what it says"),
        (Held([kept("A", "x")], "x"), "is nobody who keeps secrets"),
        (Held(b'{"kept":[{}]}'), "is no holder's of secrets"),
    ],
)
def test_each_fault_of_the_others_is_named(held: Held, said: str) -> None:
    *_, faults = look(held)
    assert [fault for fault in faults if said in fault], faults

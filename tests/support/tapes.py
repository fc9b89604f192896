"""Tapes of a few ticks."""

from array import array

from broker.core.tapes.tape import About, Tape


def tape(*rows: tuple[int, ...], fee: int = 0) -> Tape:
    """Ticks of bid, ask and maybe size; a tick of a unit is worth 10 millionths."""
    sized = len(rows[0]) == 3
    columns = [array("q", column) for column in zip(*rows, strict=True)]
    about = About("EURUSD", 0, 1000, 10, fee, sized)
    return Tape(about, columns[0], columns[1], columns[2] if sized else array("q"))

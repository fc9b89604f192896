"""Moments and sizes as operators read them (pure)."""

from datetime import UTC, datetime


def stamp(ms: int) -> str:
    """A moment to the second: `2026-11-30 18:05:09`, UTC."""
    return f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%d %H:%M:%S}"


def clock(ms: int) -> str:
    """A moment of today to the millisecond: `18:05:09.120`, UTC."""
    return f"{datetime.fromtimestamp(ms // 1000, UTC):%H:%M:%S}.{ms % 1000:03}"


def size(count: float) -> str:
    """Bytes: `512 B`, `1.5 KiB`, `20 GiB`."""
    units = ["B", "KiB", "MiB", "GiB", "TiB"]
    while count >= 1024 and len(units) > 1:
        count /= 1024
        units.pop(0)
    unit = units[0]
    return f"{count:.0f} {unit}" if unit == "B" or count >= 10 else f"{count:.1f} {unit}"

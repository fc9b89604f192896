"""How long after a call was sent does the desk called hear it ring? (`python -m bench.dealers --ring`)

One caller dials one desk again and again on an idle broker. From the time that the CALL leaves until its ring is
read on the called desk's stream; `ping` on both connections, right before, tells what the way and the two processes
cost without any dealing, and is taken off. What is left holds two verifications' worth of reading, the actors, and
the write that makes the call durable.
"""

import time
from typing import Any, Final

from bench.kit.parties import Dealer, Line, chance_code, check_transcripts
from bench.kit.report import percentile, say
from bench.kit.websocket import Socket

TARGET_MS: Final = 1.0
WARM: Final = 20


def measure(url: str, times: int = 300) -> dict[str, Any]:
    """Dial so many times; the figures, and what was wrong with a transcript. Raises Lost, Refused."""
    caller, called = Dealer(url, chance_code()), Dealer(url, chance_code())
    lines: list[Line] = []
    added: list[float] = []
    pings: list[float] = []
    rings: list[float] = []
    say(f"ring: {times} calls")
    for at in range(WARM + times):
        line = Line(at, caller, called)
        line.sign(2)
        lines.append(line)
        ping = (_ping(caller.socket) + _ping(called.socket)) / 2
        ring = _dial(line)
        if at >= WARM:
            pings.append(ping)
            rings.append(ring)
            added.append(ring - ping)
    wrong = check_transcripts(caller.socket, lines, [2] * len(lines))
    caller.socket.close()
    called.socket.close()
    named = {"added": sorted(added), "ping": sorted(pings), "ring": sorted(rings)}
    figures = {
        f"{name}_p{share}_ms": round(percentile(values, share / 100), 3)
        for name, values in named.items()
        for share in (50, 99)
    }
    return {
        "ok": not wrong,
        "errors": wrong,
        "loop": "ring",
        "calls": times,
        "target_ms": TARGET_MS,
        **figures,
    }


def _ping(socket: Socket) -> float:
    """The round trip of a request that does nothing, ms."""
    began = time.perf_counter()
    socket.ask("ping", {})
    return (time.perf_counter() - began) * 1000


def _dial(line: Line) -> float:
    """Send the CALL, wait for its ring, and pick up; ms from the one to the other."""
    caller, called = (each.socket for each in line.parties)
    began = time.perf_counter()
    caller.socket.sendall(line.frames[0])
    _until(called, lambda message: message.get("method") == "ring")
    took = (time.perf_counter() - began) * 1000
    _until(caller, lambda message: message.get("id") == line.index << 24)
    called.socket.sendall(line.frames[1])
    for each in (
        caller,
        called,
    ):  # the PICKUP's event reaches both; the callee's answer may come before or after
        _until(each, lambda message: message.get("method") == "env" and message["params"]["n"] == 1)
    return took


def _until(socket: Socket, wanted: Any) -> None:
    while not wanted(socket.receive()):
        pass

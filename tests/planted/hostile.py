"""More work than the broker can do, and many clients at once."""

ADMISSION = "broker/actors/admission.py"
DEALING = "gateways/dealing.py"
READER = "broker/actors/reader.py"
TURNS = "broker/actors/turns.py"
WIRE = "broker/tools/wire.py"

MUTANTS = (
    ("faults.overload", ADMISSION, "now - self._began > self._burst_s else", "False else"),
    ("faults.overload", WIRE, "        then(late)\n        return True\n", "        pass\n"),
    ("faults.overload", WIRE, "    if (late := _late(services)) is not None:\n        return late\n", ""),
    ("faults.overload-ends", ADMISSION, "if now - self._last > self._burst_s:", "if False:"),
    (
        "faults.resume-storm",
        TURNS,
        "            self._left -= 1\n            return\n",
        "            return\n",
    ),
    ("faults.resume-storm", READER, "if self._topic.newest - start > NEAR:", "if False:"),
    ("faults.resume-storm", READER, "if self._topic.newest - start > NEAR:", "if True:"),
    (
        "ws.contained",
        DEALING,
        "            except BaseException:\n                self._scope.cancel()\n                raise\n",
        "            except BaseException:\n                raise\n",
    ),
    ("faults.resume-storm", TURNS, "while self._line and self._left:", "while self._line:"),
)

"""Do all Pythons make the same of the same trials? Runs the pure core alone on each that is found.

    python tests/pythons.py [--install] [PYTHON …]

1. Without a PYTHON: python3.11 to python3.14 of PATH, and those that pyenv keeps. Only what is 3.11 or newer counts.
2. The core needs msgspec and lark. An interpreter that lacks them is left out, and named; with --install each gets
   them, at the versions of constraints.txt, in an environment that is thrown away (`make pythons`).
3. Each makes tapes, runs plans on them, writes artifacts, grades and draws. What comes out is hashed, and must be the
   same everywhere. Exit 1 where it is not, or where fewer than two were compared.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
NEEDED = ("msgspec", "lark")
NAMES = ("python3.11", "python3.12", "python3.13", "python3.14")
LIMIT_S = 300.0
PLANS = (
    """plan fade 1
on {on}
bound position 1000, loss 2500, orders 400, until 3000
let far = 3
when position = 0 and mid < avg(mid, 50) - far: buy 1000 at ask
when position > 0 and mid > avg(mid, 50): sell 1000 at bid
when abs(mid[7] - mid) / 2 % 5 = 1 or pnl <= -1500: flatten""",
    """plan quote 2
on {on}
bound position 300000, loss 90000, orders 5000, until 1500
when spread >= 2 and resting < 4: buy 20000 at mid - 1 for 9, sell 20000 at mid + 1 gtc
when max(bid, 90) - min(ask[3], 90) > 30: cancel, stand_down""",
)
"""What they make of it takes in every fill rule, both roundings of mid, windows, and every end of a run."""


class Made(NamedTuple):
    """What one interpreter made: its version, and hash by name; or why it made nothing."""

    python: str
    version: str
    hashes: dict[str, str]
    fault: str = ""


def make() -> dict[str, str]:
    """The hash of each thing that the core makes, here and now."""
    from broker.core.plan.read import Checked, read_plan
    from broker.core.tapes.synthetic import KINDS, make
    from broker.core.trials.report import report_of
    from broker.core.trials.review import Graded, read_trial, review
    from broker.core.trials.script import Advance, Artifact, Entry, Revise, Start, Submit, artifact_of, replay
    from broker.wire.canonical import encode
    from gateways.pages.equity import alone
    from gateways.pages.trialreport import page

    made: dict[str, str] = {}
    for seed, kind in enumerate(KINDS.values()):
        tape = make(kind, seed + 7, 1_200)
        entry = Entry(tape.ref(), tape.about, len(tape), kind.name, seed + 7)
        plans = []
        for text in PLANS:
            checked = read_plan(text.replace("{on}", kind.instrument))
            assert isinstance(checked, Checked), checked
            plans.append(checked.plan)
        orders = (Submit("buy", 300, tif="gtc"), Submit("sell", 70, tape.bids[200], 5))
        calls = [Start(plans[0]), Advance(199), *orders, Advance(301), Revise(plans[1])]
        before = replay(tape, calls).trial.place.tick
        calls.append(Advance(replay(tape, [*calls, Advance(700)]).trial.place.tick - before))
        content = artifact_of(entry, calls, replay(tape, calls))
        artifact = read_trial(content)
        assert isinstance(artifact, Artifact)
        graded = review(content, artifact, tape)
        assert isinstance(graded, Graded), graded
        report = report_of(hashlib.sha256(content).hexdigest(), artifact, graded)
        told = encode({name: _plain(getattr(graded, name)) for name in ("grades", "aside", "naive")})
        parts = {"tape": tape.content(), "artifact": content, "grades": told}
        drawn = {"picture": alone(report).encode(), "report": page(report).encode()}
        for name, text_of in {**parts, **drawn}.items():
            made[f"{kind.name}: {name}"] = hashlib.sha256(text_of).hexdigest()
    return made


def _plain(grades: object) -> object:
    import msgspec

    return msgspec.to_builtins(grades)


def found() -> list[str]:
    """The interpreters of this machine, one a version."""
    paths = [shutil.which(name) for name in NAMES]
    kept = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    paths += [str(each) for each in sorted(kept.glob("3.*/bin/python3"))]
    versions: dict[str, str] = {version_of(sys.executable): sys.executable}
    for path in filter(None, paths):
        version = version_of(path)
        if version and tuple(map(int, version.split(".")[:2])) >= (3, 11):
            versions.setdefault(version, path)
    return list(versions.values())


def version_of(python: str) -> str:
    """`3.12.1`; nothing for what does not run."""
    said = _run([python, "-c", "import platform; print(platform.python_version())"])
    return said.stdout.strip() if said.returncode == 0 else ""


def made_by(python: str, *, install: bool = False) -> Made:
    """What an interpreter makes of the core."""
    version = version_of(python)
    with _equipped(python, install=install) as equipped:
        missing = _run([equipped, "-c", f"import {', '.join(NEEDED)}"])
        if missing.returncode:
            return Made(python, version, {}, f"it has no {' and '.join(NEEDED)}")
        ran = _run([equipped, str(Path(__file__)), "--make"])
    if ran.returncode:
        return Made(python, version, {}, ran.stderr.strip()[-2_000:])
    return Made(python, version, json.loads(ran.stdout))


@contextmanager
def _equipped(python: str, *, install: bool) -> Iterator[str]:
    """The interpreter itself, or one in an environment of its own with what is needed."""
    if not install:
        yield python
        return
    with tempfile.TemporaryDirectory(prefix="turret-python-") as folder:
        inner = str(Path(folder) / "bin" / "python")
        _run([python, "-m", "venv", folder])
        pip = [inner, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        _run([*pip, "-c", str(ROOT / "constraints.txt"), *NEEDED])
        yield inner


def differences(made: Sequence[Made]) -> Iterator[str]:
    """What is not the same as the first one's."""
    first, *others = made
    for each in others:
        for name in sorted({*first.hashes, *each.hashes}):
            if first.hashes.get(name) != each.hashes.get(name):
                yield f"{name}: Python {each.version} makes another than {first.version}"


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=LIMIT_S
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="Do all Pythons make the same of the same trials?")
    parser.add_argument("pythons", nargs="*", metavar="PYTHON")
    parser.add_argument("--install", action="store_true", help="give each what it needs, for the moment")
    parser.add_argument("--make", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.make:
        print(json.dumps(make()))
        return 0
    every = [made_by(each, install=options.install) for each in options.pythons or found()]
    for each in every:
        print(f"Python {each.version}: {each.fault or f'{len(each.hashes)} things made'}")
    compared = [each for each in every if each.hashes]
    faults = list(differences(compared)) if compared else []
    print("\n".join(faults) or f"the same on {len(compared)} Python{'s' if len(compared) != 1 else ''}")
    return 1 if faults or len(compared) < 2 else 0


if __name__ == "__main__":
    sys.exit(main())

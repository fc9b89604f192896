"""Trials as their pages show them."""

REQUIREMENTS: dict[str, str] = {
    "trial.page-numbers": "the numbers that the law's page says are those of the code",
    "trial.tutorial-programs": "the tutorial shows the example programs as they are, and each is short",
    "trial.tutorial-deal": "a plan is written, checked, rehearsed, revised and graded over MCP, then deals on the wire "
    "as it would have on a tape of the same quotes, and the transcript holds",
    "trial.how-to": "the how-to shows a call of each tool of trials over MCP, with what it answers",
    "trial.tutorial-shapes": "over MCP each tool of trials has a fault, a refusal and a result in three shapes",
}

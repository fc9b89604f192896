"""Sessions of trials, and their operations (docs/reference/trial.md, Sessions, Operations, Errors)."""

REQUIREMENTS: dict[str, str] = {
    "trial.session-log": "the log is the truth: the place is where its calls lead, and a wrong log is named",
    "trial.session-versions": "a call that was decided on another version is CONFLICT, and nothing was done",
    "trial.session-once": "the identical request gets the first answer, also after a crash, and has no second effect",
    "trial.session-own": "a trial is its agent's; its owner may go on with it, to others it is not there",
    "trial.session-rejected": "attempts that are rejected are kept, the first ones",
    "trial.session-limits": "an agent has so many trials open, and opens so many a day",
    "trial.session-idle": "a trial in which nobody did anything, or whose agent is gone, is over, with its artifact",
    "trial.session-seen": "no answer, error or log shows a tick that was not run",
    "trial.session-bounded": "a trial has so many calls and fills that its artifact is one that is given out",
    "trial.session-slices": "where an advance is cut changes nothing of its fills, its place and its artifact",
    "trial.session-operation": "an advance that takes long answers an operation, which goes on by itself to its end",
    "trial.session-exclusive": "while an operation is under way nothing else is done: CONFLICT with operation_id",
    "trial.session-waits": "operation.resume waits for the end, within a bound, tells progress, and may be cancelled",
    "trial.session-killed": "SIGKILL and a restart lose nothing of what was committed, and nothing is done twice",
    "trial.session-fair": "slices are short, one at a time, and agents take turns",
    "trial.session-artifact": "finalize publishes what the calls come to on any machine, at its ref",
    "trial.session-expect": "a program of calls, failing commits and restarts is answered as the law says",
    "trial.session-shapes": "transport fault, refusal and stand-down are three shapes, for each tool over MCP",
    "trial.session-plans": "a plan that does not hold is validate's result, and a refusal of start and revise",
    "trial.session-check": "turret check runs each trial again, and names what is not what its calls come to",
}

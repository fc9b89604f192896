"""What is left of the arena's sessions in a store: whole, each of them, whatever became of the broker or the agent."""

REQUIREMENTS = {
    "arena.check": "a check names whatever in sessions, players, accounts and artifacts is not what the events say",
    "arena.gone": "the open sessions of an agent that is gone are over a minute later; a suspended one's wait",
    "arena.program": "whatever is asked, lost, repeated and restarted, in any order: versions, balances, answers and "
    "the ledger are the model's",
    "arena.late-commit": "who knows of a commit that landed late is not answered by an actor that does not",
    "arena.killed": "after SIGKILL between a commit and its answer the same key gets that answer; no action is lost or "
    "done twice, no point comes or goes",
    "arena.restored": "after a restore sessions go on where the backup has them, and the next commit is another one",
    "arena.simulated": "in a simulated broker, whatever breaks, the only player of an agent meets no conflict, and "
    "every point is where it was told",
}

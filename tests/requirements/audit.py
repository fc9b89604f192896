"""The audit log (docs/reference/network.md, Audit)."""

REQUIREMENTS: dict[str, str] = {
    "audit.order": "a change and its note are in one commit; notes become rows in one chain, once each, from however "
    "many calls at once",
    "audit.answer": "an operator's answer waits for its row, two seconds at most; a failure of the audit neither "
    "undoes nor hides the change",
    "audit.operators": "every tool of the operators that changes something is audited",
    "audit.told": "reports, keys, claims, credentials, desks that move or close, passwords and consents are audited, "
    "also where nobody called a tool",
    "audit.bound": "an agent has 120 changes noted in an hour and is refused more, but never what ends something",
    "audit.secrets": "no secret that an audited tool takes or gives is in a row",
    "audit.refused": "refused sign-ins are summed by address and minute, 120 rows an hour and one more a minute at "
    "most, and no count is lost",
    "audit.chain": "a row that was changed, removed, swapped or linked anew is found, and the first is named",
    "audit.heads": "a tail that was cut off, an emptied table, an older store beside the newer head, missing and "
    "forged heads are found; an older head alone is behind",
    "audit.rotation": "what an earlier key of the wire's has sealed stays good, and once another one has followed it "
    "seals no more",
    "audit.crash": "a crash between the commit and the head beside the store looks like no damage, and is mended",
    "audit.alarm": "before anything is written over that tells of a damage, a row says what was found, and is a fault "
    "ever after",
    "audit.restored": "a restore by the command is a row with the head that was known before, and no fault",
    "audit.never-stops": "what can't be read, written beside, or has no canonical form never stops the log",
    "audit.head-file": "the head's file is at any moment the old one or the new one, on the disk, its owner's alone",
    "audit.check": "turret check finds the same in the file, by the key that stands beside it, and rows that no list "
    "would show",
    "audit.export": "an export holds all rows and heads, and is verified offline with the same result",
    "audit.tools": "operators list the log by who did what to whom, and are told by one call whether it holds",
}

"""Tapes that the broker fetches (docs/reference/trial.md, Tape sources)."""

REQUIREMENTS = {
    "tape.source-import": "a file that is fetched is the tape that the same file is, all of it or nothing",
    "tape.source-refused": "whatever a source does, and whatever is no tape, has an end with a reason of its own",
    "tape.source-public": "nothing but https:// of public addresses is asked, and no redirect is followed",
    "tape.source-bounds": "a file that is too large or comes too slowly is given up, and half of one is none",
    "tape.source-secrets": "headers have the operators' secrets that they name, and nobody else's",
    "tape.source-hidden": "no value of a secret is in an answer, a refusal, a note, a log or a file, whatever "
    "the source says",
    "tape.source-one": "one file is fetched at a time, and read in turns",
    "tape.source-command": "turret tape import takes a URL and headers, and says what came of it",
}

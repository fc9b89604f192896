"""What the page that verifies transcripts, and the operators' console, promise."""

REQUIREMENTS: dict[str, str] = {
    "verifypage.same-verdict": "the page's verdict on any transcript is that of `turret verify`, word for word",
    "verifypage.strict": "the page reads JSON, and judges signatures, as strictly as the wire does",
    "verifypage.shows": "the page shows who said what, each step of each row, and the first that does not hold",
    "verifypage.alone": "the page is one file that asks nobody for anything, served and printed alike",
    "verifypage.hostile": "what a transcript holds is shown as text, whatever it is",
    "verifypage.unable": "a browser that can't verify is told so, and what to do",
    "console.tape": "operators see each envelope once as it is accepted, the newest of many with how many passed, within "
    "a second and four times a second at most",
    "console.tape-free": "while nobody watches the tape, envelopes cost nothing more",
}

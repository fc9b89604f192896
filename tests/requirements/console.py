"""What the page that verifies transcripts, and the operators' console, promise."""

REQUIREMENTS: dict[str, str] = {
    "verifypage.same-verdict": "the page's verdict on any transcript is that of `turret verify`, word for word",
    "verifypage.strict": "the page reads JSON, and judges signatures, as strictly as the wire does",
    "verifypage.of-this-file": "a verdict stands beside what it is of alone: it goes when something else is chosen",
    "verifypage.shows": "the page shows who said what, each step of each row, and the first that does not hold",
    "verifypage.alone": "the page is one file that asks nobody for anything, served and printed alike",
    "verifypage.hostile": "what a transcript holds is shown as text, whatever it is",
    "verifypage.unable": "a browser that can't verify is told so, and what to do",
    "console.tape": "operators see each envelope once as it is accepted, the newest of many with how many passed, "
    "within a second and four times a second at most",
    "console.sign-in": "the console opens to who shows the operators' token, by a cookie that is HttpOnly and "
    "SameSite=Strict; tries are limited, and who is not signed in sees nothing",
    "console.sessions-end": "a console's session ends two hours unused, after twelve in any case, and with its "
    "sign-out",
    "console.csrf": "a form is taken from this very origin alone, with the token of this browser",
    "console.alone": "the console loads our own files alone, and stands on the operators' port",
    "console.live-ends": "a live page ends at once with its session, and in silence with the broker, to come back",
    "console.text": "what others wrote is shown as text, whatever it is",
    "console.conversation": "a conversation is shown with each step as the broker's own verifier judges it now",
    "console.calls": "desks and calls in progress are listed; a desk is suspended and released, a call ended",
    "console.reports": "reports are read and resolved, once however often the button is pressed",
    "console.agents": "agents and owners are listed; an agent is suspended and unsuspended, with effect at once",
    "console.audit": "the audit's events are shown, and the whole log is verified when asked",
    "console.health": "readiness, the store's figures and refusals by code are shown",
    "console.tape-free": "while nobody watches the tape, envelopes cost nothing more",
}

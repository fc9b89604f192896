"""What the broker promises to owners and on their pages."""

REQUIREMENTS: dict[str, str] = {
    "owners.hashed-off-the-loop": "passwords are hashed by argon2id in a thread, a few at once; beyond that the "
    "answer is overloaded",
    "owners.equal-answers": "an unknown e-mail and a wrong password get the same answer, at the same cost",
    "owners.throttled": "at most 5 failures a minute for an e-mail and 20 from an address, then rate_limited with the "
    "time; what is stopped does not count",
    "owners.sessions-end": "a session ends 12 h unused, after 7 days, at its sign-out and with the password",
    "owners.one-email": "an e-mail, in its one form, has one owner, also where two sign up at once",
    "owners.invitations": "where sign-up is by invitation one serves once, in its time, for whom it was made; "
    "closed, nobody signs up",
}

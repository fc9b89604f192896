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
    "pages.plain": "every page is sound HTML that works without any script: labels, landmarks, headings in order",
    "pages.headers": "a page loads nothing of others, is in no frame and in no cache, and its forms go to us alone",
    "pages.text": "what people wrote is shown as text, whatever it is",
    "pages.cookie": "the session's cookie is HttpOnly and SameSite=Lax, under TLS Secure and __Host-",
    "pages.csrf": "a form is taken from this very origin alone, with the token of this browser, also to sign in",
    "pages.next": "who signs in is led on to one of our own pages and nowhere else",
    "pages.signed-in": "who is not signed in is led to sign in, and then back; nothing is done before",
    "pages.errors": "an error says what happened and what to do next, and nothing of the inside",
    "pages.sign-in": "signing in gives another cookie, signing out ends the session; errors stand at their field",
    "pages.sign-up": "who signs up is signed in; what is wrong is said at its field",
    "pages.password": "a changed password signs every other browser out",
    "pages.agents": "an owner sees each agent's tier, presence, keys, limits, and when it was last seen",
    "pages.claim": "a claim code makes an agent the owner's; a wrong one is said at its field",
    "pages.requests": "requests that wait are accepted with no more than was asked, or declined",
    "pages.consent": "an owner sees which app asks for what and where it leads, and chooses for whom and what",
    "pages.grants": "an owner sees which apps act, and signs one out",
    "pages.directory": "anybody searches the agents that want to be found",
    "pages.hostile": "whatever a browser sends gets a sound page or leads to one, and is text where it is shown",
    "pages.not-mine": "what is another owner's looks like what there is not",
}

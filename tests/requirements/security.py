"""Threats that have tests of their own; docs/explanation/security.md has all of them, and what stops each."""

REQUIREMENTS: dict[str, str] = {
    "threat.local-reader": "another user of the machine reads no key, no store and no export, whatever the umask",
    "threat.planted-file": "a file or link that somebody put where we write is neither written through nor believed",
    "threat.secrets-told": "no seed, key file, follow statement, token or client secret is in a log, an answer, a "
    "metric, a repr, an argument or an environment",
    "threat.helper": "a helper process has no secret in its arguments or its environment",
    "threat.foreign-ids": "a foreign conversation, session or cursor is answered as one that is not there: code, "
    "message, headers and time; a desk that turns one away as one that is busy, and one that is closed or has lapsed "
    "as one that never was",
    "threat.unnamed-proxy": "a proxy on this machine that no setting names is warned of, once",
    "threat.smuggling": "a request whose length, target or host two readers could take differently is refused, and "
    "nothing that follows it is answered",
    "threat.splitting": "nothing of a request becomes a header of an answer, or a second answer",
    "threat.rebinding": "a page whose name is rebound to this machine reaches no door of either port",
    "threat.csrf": "a page can't have a browser change anything here, by a form or a script, whatever it sends",
    "threat.websocket": "a page of another origin opens no WebSocket on either port",
    "threat.open-by-mistake": "a broker that was told nothing listens on loopback alone, on no socket in the file "
    "system, and each bind that others can reach is refused without protection",
    "threat.unsafe-limits": "no request, file or setting alone lifts the limits, and never where others can reach it",
    "threat.eavesdropper": "both ports speak TLS from 1.2 on, with forward secrecy and without compression or "
    "renegotiation, and nothing in the clear beside it; a dealer takes no certificate that nobody vouches for",
    "threat.known-flaw": "no library with a known flaw in what is used here can be installed, all are pinned, and what "
    "is known against the pins is asked for",
}

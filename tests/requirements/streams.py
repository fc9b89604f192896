"""Streams, presence, and the limits by address: what tests/broker/actors show of them."""

REQUIREMENTS: dict[str, str] = {
    "streams.stored-then-live": (
        "a reader gets what is stored after its cursor, then what is live: each once, in order, no gap"
    ),
    "streams.from-now": "without a cursor a reader begins with what is committed after it subscribed",
    "streams.from-oldest": '"0" begins with the oldest event that is kept',
    "streams.cursor-is-the-last-one": (
        "a cursor means the last one that the client has: reading goes on with the next"
    ),
    "streams.trimmed": (
        "a cursor before the oldest kept: recovered false, trimmed, goes on with the oldest kept"
    ),
    "streams.epoch-changed": "a cursor of another epoch: recovered false, epoch_changed, goes on from now",
    "streams.unknown-cursor": (
        "a cursor of another stream, or none at all: recovered false, unknown, goes on from now"
    ),
    "streams.future-cursor": "a cursor beyond the head: recovered false, future, goes on from now",
    "streams.row-members": (
        "ring, env and end carry cursor, conv, n, sig, envelope, chain, accepted_at and own"
    ),
    "streams.same-order-for-all": "all readers of a stream get the same events in the same order",
    "streams.slow-reader-is-closed": (
        "a reader beyond 4,096 live events or 1 MiB behind is closed as slow and resumes by cursor"
    ),
    "streams.slow-reader-slows-nobody": "a slow reader holds up neither the writers nor other readers",
    "streams.backlog-is-not-slowness": (
        "what was stored before a reader caught up does not count against its queue"
    ),
    "streams.move-ends-the-follow": (
        "following a desk's code ends with its move or close, after what was committed before"
    ),
    "streams.old-key-keeps-its-stream": (
        "the stream of a key goes on for its own follower when the desk's code moves"
    ),
    "streams.dropped-transcripts": (
        "events whose transcript was dropped are passed over, and reading goes on behind them"
    ),
    "statements.follow-until": (
        "a follow statement is good until its `until` and no longer, whatever the wall clock does"
    ),
    "presence.open-stream": "a desk is online while one of its streams is open, however many there are",
    "presence.linger": "a desk stays online for 15 s after its last stream closed",
    "presence.poll": "a desk stays online for 60 s after a poll",
    "presence.snapshot-then-changes": "a watch gives a snapshot, then changes",
    "presence.coalesced": "changes are coalesced to one answer a second, and what changed back is none",
    "presence.moved-code": "a watch of a code follows it to the key that it names now",
    "limits.guessing": (
        "20 bad signatures or unknown ids of one address in 10 s stop it for 10 s with rate_limited"
    ),
    "limits.guessing-exempt": "who has authenticated, and loopback, are not stopped for guessing",
    "limits.opens": "20 desks opened from one address in an hour; a refused opening spends nothing",
    "limits.opens-ipv6": "an IPv6 /64 counts as one address",
    "tools.poll-at-once": "a poll answers at once with what waits after the cursor",
    "tools.poll-waits": "a poll with wait_ms waits for the first event and no longer than that",
    "tools.poll-rings-alone": "desk_rings answers with rings alone, and its cursor goes past all else",
}

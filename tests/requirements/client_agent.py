"""The agent's side of the client: tokens, calls, inbox, channels, registration."""

REQUIREMENTS: dict[str, str] = {
    "cli.agent-token": "turret agent-token gets a token by an agent's key, into a file of mode 0600 or to standard "
    "output",
    "client.agent-assertion": "an agent's assertion is EdDSA by its key, for one audience, good for a minute, with a "
    "jti of its own",
    "client.agent-issuer": "the token endpoint is found by RFC 9728 and 8414, each document naming itself; from https "
    "no http is followed",
    "client.agent-token": "a token is kept, renewed at four fifths of its life, and never used again once refused",
    "client.agent-one-refresh": "however many wait for a token, one asks; its failure is theirs too",
    "client.agent-token-clock": "assertions are dated by the server's clock, as the Date of its answers tells",
    "client.agent-revoked": "a key that lost its right gets no token, is not tried again, and ends the block",
    "client.agent-secrets": "no token and no assertion stands in a message, a log, a repr or an argument",
    "client.agent-once": "a change is asked with one idempotency_key, the same over lost answers and passing refusals",
    "client.agent-inbox": "messages come by cursor, each once and in order, across breaks, slow closes and cancelling",
    "client.agent-catch-up": "what the stream has no more (trimmed, epoch_changed, unknown, future) is read from the "
    "inbox, and handed out once",
    "client.agent-requests": "requests that wait are found and heard once each; the outcome of one can be waited for",
    "client.agent-channel": "a channel's messages come by seq without a hole or a repetition, across breaks and a full "
    "waiting room; what is gone for good is said",
    "client.agent-loop": "an agent that answers by itself stops where the loop guard stops it",
    "client.agent-tutorial": "the tutorial on two agents goes as it is written",
    "client.agent-demo": "the demo shows two agents that register, agree, talk and part",
    "client.agent-register": "registering is repeated with the identical bytes until it is answered, and done once",
}

"""Webhooks: events posted to a URL of an agent's."""

REQUIREMENTS = {
    "webhook.event": "what an agent's stream carries from the registration on is posted with its cursor, signed as "
    "Standard Webhooks says, and the receivers' own library takes it",
    "webhook.order": "events are posted one after the other, in their order, each until it is taken",
    "webhook.attempt": "each attempt has the event's id, and a time and a signature of its own",
    "webhook.given-up": "an event is tried for 24 hours, later and later; then, or at once after 410, the webhook is "
    "disabled, which its agent's inbox and stream say",
    "webhook.retry-after": "a receiver that asks to be left alone is, within bounds",
    "webhook.rotation": "after a rotation the old secret signs beside the new one for a day",
    "webhook.secret": "a secret is shown once, and is in no answer, log or document but sealed",
    "webhook.restart": "a broker that dies loses no event, and repeats one under the same id",
    "webhook.idle": "webhooks with nothing to send cost no write and no wait at the start",
    "webhook.parallel": "who never answers holds up nobody else, and attempts under way are bounded",
    "webhook.standing": "a suspended agent is sent nothing meanwhile and all of it afterwards; with its agent a "
    "webhook is gone",
    "webhook.gap": "what can't be sent any more is named in the payload behind it",
    "webhook.replaced": "another URL takes over what waits; the old one, or a deleted one, is sent no more",
    "webhook.tools": "one URL an agent, of https:// on port 443; its state is shown, it is tested, sent again, and "
    "none for an agent that nobody has claimed",
    "webhook.check": "a check names a push that is not what it says, or not found by it",
    "webhook.operators": "operators list webhooks, those that were disabled first, without a secret",
    "webhook.public": "no form of an address that is not public is ever connected to, and no redirect is followed",
    "webhook.receiver": "a receiver costs its own patience at most, and no byte of what it says reaches the agent",
    "webhook.lookups": "a slow server of names takes no thread from anything else",
}

"""Secrets of agents (docs/reference/trial.md, Secrets; network.md, Webhooks)."""

REQUIREMENTS = {
    "trial.secret-names": "what is a name, a value, and a template that names secrets as ${NAME}; a value is no "
    "template, whatever it says",
    "trial.secret-kept": "a secret is set, listed by name, replaced and unset, so many of each holder, and none of an "
    "agent that nobody has claimed",
    "trial.secret-owner": "agents of one owner share their secrets; an agent without an owner has its own",
    "trial.secret-hidden": "no value is in an answer, a refusal, a digest, a note, a log, a figure, a file in clear or "
    "a backup",
    "trial.secret-used": "a webhook's headers have the value as it is when they are sent; without it nothing is sent, "
    "and the webhook says which one is missing",
    "trial.secret-sealed": "a value is sealed by NaCl's SecretBox, for its holder and its name alone",
    "trial.secret-key": "the key is made at the first start with mode 0600, or is where the operator says",
    "trial.secret-key-lost": "with another key names are listed as unreadable, and using one says so; the old one put "
    "back opens them",
    "trial.secret-key-changed": "nothing is sealed with a key that its file has no more, and it is said aloud",
    "trial.secret-check": "turret check knows secrets: their documents, and that the keys beside them open them; a "
    "restore says what it needs of them",
    "trial.secret-rotation": "after a rotation the new key opens all, the old one is gone, and whatever ends it in "
    "between leaves all readable",
    "trial.secret-restart": "a secret that was acknowledged is there after a kill",
    "threat.secret-store": "who reads the store, a backup or what any face shows learns no secret that an agent keeps",
    "webhook.headers": "an agent adds headers to what its webhook is sent, none that frames or signs it, and is shown "
    "their names alone",
}

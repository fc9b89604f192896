"""Secrets of agents."""

CORE = "broker/core/safe.py"
HEADERS = "broker/core/pushheaders.py"
KEYS = "broker/wire/safekeys.py"
SAFE = "broker/actors/safe.py"
WORKER = "broker/actors/pusher.py"
TOOLS = "broker/tools/secret_store.py"
REGISTRY = "broker/tools/registry.py"
FILE = "gateways/safekey.py"
CHECK = "broker/actors/check_safe.py"
COMMAND = "gateways/commands/secrets_key.py"

MUTANTS = (
    ("trial.secret-names", CORE, 'if part["wrong"]:', "if False:"),
    ("trial.secret-names", CORE, 'else "${", template)', 'else "$${", template)'),
    ("trial.secret-kept", CORE, "if before is None and len(row.kept) >= MOST:", "if len(row.kept) > MOST:"),
    ("trial.secret-kept", TOOLS, 'if agent.tier == "unclaimed":', "if False:"),
    ("trial.secret-kept", "broker/actors/leaving.py", '"push", "endpoint", "safe")', '"push", "endpoint")'),
    ("trial.secret-owner", TOOLS, "return agent.owner_id or agent.agent_id", "return agent.agent_id"),
    (
        "trial.secret-sealed",
        KEYS,
        "return value if (whose, called) == (holder, name) else None",
        "return value",
    ),
    ("trial.secret-used", SAFE, "agent.owner_id or agent_id", "agent_id"),
    ("trial.secret-used", WORKER, "if isinstance(added, Outcome):", "if False:"),
    ("trial.secret-hidden", REGISTRY, "        if self.hides:\n", "        if False:\n"),
    (
        "trial.secret-hidden",
        FILE,
        "except ValueError:  # msgspec's are ValueErrors\n        sizes = set()",
        "except KeyError:\n        sizes = set()",
    ),
    ("trial.secret-key", FILE, "if path.stat().st_mode & 0o077:", "if False:"),
    ("trial.secret-key", FILE, "if named is None and not (path.exists()", "if not (path.exists()"),
    ("trial.secret-key-lost", FILE, 'if await store.find("safe", "all", "1", limit=1):', "if False:"),
    ("trial.secret-key-changed", SAFE, "self._keys.is_kept is not None and", "False and"),
    (
        "trial.secret-key-changed",
        FILE,
        "return line.key in {each.key for each in read_lines(path)}",
        "return True",
    ),
    ("trial.secret-check", CHECK, "unreadable += 1", "pass"),
    ("trial.secret-check", CHECK, "if names != sorted(set(names)):", "if names != sorted(names):"),
    ("trial.secret-rotation", COMMAND, "        write_lines(path, lines)\n", ""),
    ("trial.secret-rotation", COMMAND, "write_lines(path, lines[-1:])", "pass"),
    ("trial.secret-rotation", SAFE, "kept.key == keys.current", "True"),
    ("webhook.headers", HEADERS, "if name in OURS or name.startswith(OUR_KINDS):", "if name in OURS:"),
    ("webhook.headers", HEADERS, "if named > MOST_NAMED:", "if False:"),
)
"""(requirement, file, what stands there, what is put in its place)."""

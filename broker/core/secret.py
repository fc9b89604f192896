"""Secrets made of chance (sessions, credentials, codes, tokens): what is kept of them (pure)."""

import hashlib


def digest(secret: str) -> str:
    """What is kept of a secret: its sha256, hex. It is too random to be guessed, so that no salt is needed."""
    return hashlib.sha256(secret.encode()).hexdigest()

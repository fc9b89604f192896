"""Owners in tests: hashing that costs nothing, and how one signs up."""

from broker.config import Owners

CHEAP = Owners(sign_up="open", argon2_passes=1, argon2_memory_kib=8)
"""Settings for tests: the smallest hash that there is. No configuration takes them."""
PASSWORD = "correct horse battery"

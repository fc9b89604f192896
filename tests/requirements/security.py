"""Threats that have tests of their own; the explanation of security has all of them, and what stops each."""

REQUIREMENTS: dict[str, str] = {
    "threat.local-reader": "another user of the machine reads no key, no store and no export, whatever the umask",
    "threat.planted-file": "a file or link that somebody put where we write is neither written through nor believed",
}

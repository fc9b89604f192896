"""argon2id, off the loop: a hash takes a core for a tenth of a second and 64 MB while it lasts.

1. At most AT_ONCE are made at once, and at most WAITING wait: beyond that the answer is overloaded, so that nobody
   fills the memory by signing in.
2. An unknown owner costs the same as a wrong password: something is hashed in any case.
"""

import base64
from typing import Final

import trio

from broker.config import Owners
from broker.wire.refusals import Refusal, refuse

AT_ONCE: Final = 2
WAITING: Final = 32
SALT: Final = 16
HASH: Final = 32


class Passwords:
    """Hashes passwords, and holds them against hashes."""

    def __init__(self, settings: Owners) -> None:
        # Who only dials needs no argon2, and reaches this module by way of the registry.
        from argon2 import PasswordHasher

        self._hasher = PasswordHasher(
            time_cost=settings.argon2_passes,
            memory_cost=settings.argon2_memory_kib,
            parallelism=1,
            hash_len=HASH,
            salt_len=SALT,
        )
        self._nobody = nobody(settings)
        self._limiter = trio.CapacityLimiter(AT_ONCE)

    async def hash(self, password: str) -> str | Refusal:
        """The encoded hash with a fresh salt; overloaded where too many wait. Cancelling ends the wait for a place;
        a hash that has begun is waited for."""
        if self._full():
            return _busy()
        return await trio.to_thread.run_sync(self._hasher.hash, password, limiter=self._limiter)

    async def verify(self, password: str, encoded: str | None) -> bool | Refusal:
        """Whether this is the password. `encoded` None: there is no such owner; it is False, as late as any other."""
        if self._full():
            return _busy()
        return await trio.to_thread.run_sync(
            self._verify, password, encoded or self._nobody, limiter=self._limiter
        )

    def is_old(self, encoded: str) -> bool:
        """Whether the settings have changed since this hash was made, so that it should be made again."""
        return self._hasher.check_needs_rehash(encoded)

    def _verify(self, password: str, encoded: str) -> bool:
        from argon2.exceptions import VerifyMismatchError

        try:
            return self._hasher.verify(encoded, password)
        except VerifyMismatchError:
            return False

    def _full(self) -> bool:
        return self._limiter.statistics().tasks_waiting >= WAITING


def nobody(settings: Owners) -> str:
    """The encoded hash of no password: as costly as any, and no known text leads to it."""
    salt, digest = (base64.b64encode(bytes(size)).rstrip(b"=").decode() for size in (SALT, HASH))
    return f"$argon2id$v=19$m={settings.argon2_memory_kib},t={settings.argon2_passes},p=1${salt}${digest}"


def _busy() -> Refusal:
    return refuse("overloaded", "too many sign in at this moment; try again shortly", retry_after_ms=1000)

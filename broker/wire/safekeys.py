"""The keys that secrets are sealed with (docs/reference/trial.md, Secrets): NaCl's SecretBox.

1. Whose a secret is and what it is called is sealed with it: a box that is moved to another place opens nowhere.
2. A box says which key made it, by an id that tells nothing of the key. With an older key of ours it opens, too.
3. No text of these objects holds a key.

Source: NaCl, crypto_secretbox (XSalsa20 and Poly1305), through libsodium.
"""

import hashlib
from collections.abc import Callable, Sequence
from typing import Final

import msgspec
from nacl.exceptions import CryptoError
from nacl.secret import SecretBox

KEY_SIZE: Final = SecretBox.KEY_SIZE
NONCE_SIZE: Final = SecretBox.NONCE_SIZE
_ID: Final = b"turret: which key sealed a secret\0"


class SafeKeys:
    """The keys of one broker, the present one last."""

    __slots__ = ("_boxes", "current", "is_kept")

    def __init__(self, keys: Sequence[bytes], is_kept: Callable[[], bool] | None = None) -> None:
        """`keys`: KEY_SIZE bytes each, one at least. `is_kept`: whether the present one is still where it was read; it
        may take as long as a disk does. None: it is kept nowhere."""
        self._boxes = {key_id(key): SecretBox(key) for key in keys}
        self.current = key_id(keys[-1])
        """The id of the present key."""
        self.is_kept = is_kept

    def has(self, key: str) -> bool:
        """Whether the key with this id is one of ours: what it sealed opens, or is damaged."""
        return key in self._boxes

    def seal(self, holder: str, name: str, value: str, nonce: bytes) -> str:
        """The secret as it may be stored (hex), by the present key. `nonce`: NONCE_SIZE bytes of chance."""
        text = msgspec.json.encode((holder, name, value))
        return bytes(self._boxes[self.current].encrypt(text, nonce)).hex()

    def open(self, holder: str, name: str, sealed: str, key: str) -> str | None:
        """The value; None where it was made with no key of ours, for another place, or is damaged."""
        box = self._boxes.get(key)
        try:
            text = b"" if box is None else bytes(box.decrypt(bytes.fromhex(sealed)))
            whose, called, value = msgspec.json.decode(text, type=tuple[str, str, str])
        except (CryptoError, ValueError):  # msgspec's are ValueErrors
            return None
        return value if (whose, called) == (holder, name) else None


def key_id(key: bytes) -> str:
    """What a key is called where it is not to be shown."""
    return hashlib.sha256(_ID + key).hexdigest()[:16]

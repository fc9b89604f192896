"""What must not stand in a log, and is taken out of it wherever it stands: by the name of the member that holds it, or
by its own form.

The code logs no secrets. This is for what it does not see: the text of an exception, a library's warning.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

SHOWN: Final = "[redacted]"
DEEPEST: Final = 8
NAMES: Final = frozenset(
    (
        "authorization",
        "proxy_authorization",
        "cookie",
        "set_cookie",
        "token",
        "access_token",
        "refresh_token",
        "id_token",
        "bearer",
        "password",
        "secret",
        "client_secret",
        "webhook_secret",
        "api_key",
        "private_key",
        "proof",
        "sig",
        "signature",
        "prev_sig",
        "statement",
        "assertion",
        "client_assertion",
        "code_verifier",
        "claim_code",
        "claim_secret",
        "credential",
        "credentials",
        "invitation",
        "auth",
        "session",
        "csrf",
        "challenge",
        "operator_token",
    )
)
"""Members that hold a secret, or what proves something for as long as it is fresh; `-` and case do not matter."""
_NAME: Final = "|".join(sorted((name.replace("_", "[_-]?") for name in NAMES), key=len, reverse=True))
_NAMED: Final = re.compile(
    rf"""(?isx)
    (?<![a-z0-9])({_NAME})(?![a-z0-9])          # a name
    ((?:\\?["'])?\s{{0,4}}[:=]\s{{0,4}}|["'],\s{{0,4}})        # and what stands between it and its value
    (?:b(?=["']))?
    (?: \\"(?:(?!\\").)*(?:\\")? | "(?:[^"\\]|\\.)*"? | '[^']*'? | \{{[^}}]*\}}?
      | (?:(?:bearer|turret|basic)\s+)?[^\s,;&)\]}}"']+ )
    """
)
_FORMS: Final = re.compile(
    r"""(?ix)
    \b(?:bearer|turret|basic)\s+[a-z0-9_.~+/=-]{16,}       # credentials of an Authorization header
    | \beyJ[a-z0-9_-]{8,}\.[a-z0-9_-]+\.[a-z0-9_-]+         # a signed token
    | \bts_[a-z0-9_-]{43}                                   # an agent's credential
    | \b(?:gr|ow)_[0-9A-Z]{26}\.[a-z0-9_.-]{20,}            # a code, a refresh token, an owner's session
    | \bwhsec_[a-z0-9+/=_-]+ | \bturret_operator_[a-z0-9_-]+
    | \b[0-9a-f]{128}\b                                     # an Ed25519 signature
    """
)


def redact(value: Any, depth: int = 0) -> Any:
    """The value without secrets: texts, mappings and sequences at every depth; beyond DEEPEST nothing is shown."""
    if isinstance(value, str):
        return redact_text(value)
    if isinstance(value, bytes | bytearray):
        return redact_text(bytes(value).decode("utf-8", "replace"))
    if value is None or isinstance(value, bool | int | float):
        return value
    if depth >= DEEPEST:
        return SHOWN
    if isinstance(value, Mapping):
        return {
            str(name): SHOWN if is_secret(str(name)) else redact(each, depth + 1)
            for name, each in value.items()
        }
    if isinstance(value, Sequence | set | frozenset):
        return [redact(each, depth + 1) for each in value]
    return redact_text(repr(value))


def redact_text(text: str) -> str:
    """The text without what stands in it as a named secret, or has a secret's form."""
    return _FORMS.sub(SHOWN, _NAMED.sub(rf"\1\2{SHOWN}", text))


def is_secret(name: str) -> bool:
    """Whether a member of this name is never shown; what stands before it changes nothing (`new_password`)."""
    words = name.lower().replace("-", "_").split("_")
    return any("_".join(words[start:]) in NAMES for start in range(len(words)))

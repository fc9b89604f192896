"""Keys and canonical form."""

KEYS = "broker/wire/keys.py"
CANONICAL = "broker/wire/canonical.py"
GRAMMAR = "broker/wire/grammar.py"

MUTANTS = (
    (
        "keys.strict",
        KEYS,
        "    except (CryptoError, ValueError):\n        return False",
        "    except (CryptoError, ValueError):\n        return True",
    ),
    (
        "keys.hex-lower",
        "broker/wire/ids.py",
        'PK: Final = re.compile(r"[0-9a-f]{64}")',
        'PK: Final = re.compile(r"[0-9a-fA-F]{64}")',
    ),
    (
        "keys.hex-lower",
        "broker/wire/ids.py",
        'SIG: Final = re.compile(r"[0-9a-f]{128}")',
        'SIG: Final = re.compile(r"[0-9a-fA-F]{128}")',
    ),
    ("keys.hex-lower", KEYS, " or signature.hex() != sig or key.hex() != pk", ""),
    ("keys.acceptable", KEYS, " and crypto_core_ed25519_is_valid_point(bytes.fromhex(pk))", ""),
    (
        "keys.rfc8032",
        KEYS,
        "crypto_sign(message, self._secret)[:64]",
        "crypto_sign(message + b'.', self._secret)[:64]",
    ),
    ("keys.seed-unseen", KEYS, 'f"SigningKey(pk={self.pk})"', 'f"SigningKey(seed={self.seed})"'),
    ("canonical.utf16-order", CANONICAL, 'return name.encode("utf-16-be")', "return name.encode()"),
    (
        "canonical.utf16-order",
        CANONICAL,
        "if not text.isascii() and _ASTRAL.search(text) and _BMP_TOP.search(text):",
        "if False:",
    ),
    ("canonical.numbers-as-ecmascript", CANONICAL, "if -6 < point <= 0:", "if -5 < point <= 0:"),
    ("canonical.numbers-as-ecmascript", CANONICAL, "if count <= point <= 21:", "if count <= point <= 20:"),
    (
        "canonical.jcs",
        CANONICAL,
        "put(str(value) if kind is int else number(value))",
        "put(repr(value))",
    ),
    (
        "canonical.duplicates",
        CANONICAL,
        "if text != data and len(text.translate(None, _WHITE)) != len(data.translate(None, _WHITE)):",
        "if False:",
    ),
    ("canonical.beyond-2-53", "broker/wire/ids.py", "MAX_SAFE: Final = 2**53 - 1", "MAX_SAFE: Final = 2**53"),
    (
        "canonical.beyond-2-53",
        CANONICAL,
        'if _LONG in b":" + text.translate(_DIGITS) and _beyond(text):',
        "if False:",
    ),
    (
        "canonical.judged-on-the-double",
        CANONICAL,
        "    value = float(token)\n    if not -MAX_SAFE <= value <= MAX_SAFE:",
        "    value = float(token)\n    if not -MAX_SAFE < value < MAX_SAFE:",
    ),
    (
        "canonical.hostile-depth",
        CANONICAL,
        "except (_Forbidden, msgspec.MsgspecError, UnicodeError, RecursionError):\n        return None",
        "except (_Forbidden, msgspec.MsgspecError, UnicodeError):\n        return None",
    ),
    ("canonical.not-json", CANONICAL, 'raise ValueError(f"{token} is not JSON")', "return 0"),
    (
        "canonical.any-spelling",
        CANONICAL,
        "return found if isinstance(found, Refusal) else found[1]",
        "return found if isinstance(found, Refusal) else data",
    ),
    (
        "canonical.integers-in-any-form",
        CANONICAL,
        "return int(value) if value.is_integer() else value",
        "return value",
    ),
    (
        "canonical.code-of-the-place",
        CANONICAL,
        "return refuse(code, fault.message, path=join(at, fault.path))",
        'return refuse("bad_envelope", fault.message, path=join(at, fault.path))',
    ),
    (
        "canonical.judged-to-the-end",
        GRAMMAR,
        "else _NOT_JSON\n        return _NOT_JSON",
        "else self.fault or _NOT_JSON\n        return self.fault or _NOT_JSON",
    ),
    (
        "canonical.fast-path-agrees",
        CANONICAL,
        "if repr(value) != token or not 1e-4 <= abs(value) <= MAX_SAFE or value.is_integer():",
        "if False:",
    ),
    ("canonical.lone-surrogates", GRAMMAR, 'self.forbid("a lone surrogate")', "pass"),
    ("canonical.lone-surrogates", GRAMMAR, 'self.forbid("a lone surrogate in a name")', "pass"),
    ("canonical.depth", GRAMMAR, "MAX_DEPTH: Final = 32", "MAX_DEPTH: Final = 33"),
    (
        "canonical.depth",
        "broker/wire/envelope.py",
        "found = quick(text, MAX_DEPTH - 1)",
        "found = quick(text, MAX_DEPTH)",
    ),
    ("canonical.path", GRAMMAR, "level.index += 1", "level.index += 0"),
    ("canonical.members", CANONICAL, "if len(data) == len(inner) + shell:", "if True:"),
)

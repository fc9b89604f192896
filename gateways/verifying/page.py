"""The page that verifies a transcript or a session in a browser, as one text that needs nothing else.

1. Its Content-Security-Policy lets run what stands in it, by hash, and nothing be loaded or sent: also from a file.
2. Its scripts are the parts below, one after the other, in one function: they name nothing outside it but `turret`.
3. It judges as broker/wire and broker/core/arenaverify do (tests/browser/test_verify.py and test_verify_session.py hold
   both to the same files).

Needs no server's library: `turret verify-page` prints it on a dealer's machine.
"""

import base64
import hashlib
from functools import cache
from pathlib import Path
from typing import Final

import msgspec

PATH: Final = "/verify"
"""Where the public port has it."""
PARTS: Final = Path(__file__).parent / "parts"
SCRIPTS: Final = (
    *("json.js", "ed25519.js", "envelope.js", "transcript.js"),
    *("chance.js", "forms.js", "hilo.js", "rfq.js", "session.js"),
    *("sessionshow.js", "show.js"),
)
"""In the order in which they build upon each other."""
STYLES: Final = (Path(__file__).parent.parent / "pages/templates/turret.css", PARTS / "verify.css")


class VerifyPage(msgspec.Struct, frozen=True):
    """The page in UTF-8, and the policy for the header of who serves it (it has the same in itself, but for frames)."""

    html: bytes
    policy: str


@cache
def verify_page() -> VerifyPage:
    """The page; read and put together once."""
    style = "\n" + "".join(path.read_text("utf-8") for path in STYLES)
    parts = "\n".join((PARTS / name).read_text("utf-8") for name in SCRIPTS)
    script = f'\n(() => {{\n"use strict";\n{parts}\n}})();\n'
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
    page = (PARTS / "page.html").read_text("utf-8")
    for name, text in (("policy", policy), ("style", style), ("script", script)):
        page = page.replace(f"{{{name}}}", text, 1)
    return VerifyPage(page.encode(), f"{policy}; frame-ancestors 'none'")


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"

"""Dealers with desks, and conversations whose envelopes are signed ahead.

Ed25519 is deterministic, and an envelope's prev_sig is the signature before it: so a whole chain is signed before
the broker has seen its first envelope. Only ts sets a bound (calls.skew_s, 300 s): sign right before a run.
"""

import json
import secrets
import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

from nacl.bindings import crypto_sign

from bench.kit.websocket import Socket, frame
from broker.config import Settings
from broker.wire.chain import chain_next, chain_start, verify_transcript
from broker.wire.envelope import bootstrap
from broker.wire.keys import SigningKey
from broker.wire.statement import build_statement

LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
NOTE: Final = (
    "two-way in five, firm for ten seconds, settles T+2 through the usual account; "
    "reply HIT or PASS, or name your own size and side"
)
TERMS: Final = {
    "instrument": "EURUSD",
    "note": NOTE,
    "px": "1.08425",
    "qty": "5000000",
    "side": "both",
    "tenor": "SP",
}
BODY: Final = json.dumps(TERMS, separators=(",", ":"), sort_keys=True).encode()
"""Makes an envelope of about 600 bytes."""
PAGE: Final = 500


def codes() -> Iterator[str]:
    """Desk codes that may be opened, BAAA and on."""
    reserved = set(Settings().desks.reserved)
    for at in range(26**3, 26**4):
        code = "".join(LETTERS[at // 26**place % 26] for place in (3, 2, 1, 0))
        if code not in reserved:
            yield code


def chance_code() -> str:
    """A code that is not among `codes`, by chance: for dealers beside those of a benchmark."""
    return "A" + "".join(secrets.choice(LETTERS) for _ in range(3))


class Dealer:
    """A key with a desk, on one connection that it has proven and whose stream it follows."""

    def __init__(self, url: str, code: str, *, follow: bool = True, key: SigningKey | None = None) -> None:
        """Connect, authenticate, open the desk (where `key` is not given: it has none yet), follow its stream."""
        self.key = key or SigningKey.generate()
        self.code = code
        self.secret = bytes.fromhex(self.key.seed) + bytes.fromhex(self.key.pk)
        self.socket = Socket(url)
        self.wire: str = self.socket.hello["wire"]
        self.socket.ask("authenticate", self.statement("authenticate", self.socket.hello["challenge"]))
        if key is None:
            self.socket.ask("open_desk", self.statement("open_desk", code=code))
        if follow:
            self.socket.ask("follow", {})

    def statement(self, do: str, nonce: str | None = None, **members: Any) -> dict[str, Any]:
        """The params `statement` and `sig` of a statement signed now."""
        nonce = nonce or secrets.token_hex(16)
        text, sig = build_statement(do, self.key, self.wire, int(time.time()), nonce, **members)
        return {"statement": json.loads(text), "sig": sig}


class Line:
    """One conversation: the frames of its next envelopes, and the chain that each must have.

    Even n is the caller's, odd n the other's. `frames` and `chains` are indexed by n; frames that were sent may be
    emptied, and those that were not are signed again with a fresh ts (`rewind`).
    """

    def __init__(self, index: int, caller: Dealer, called: Dealer) -> None:
        self.index = index
        self.parties = (caller, called)
        self.conv = secrets.token_hex(8)
        self.frames: list[bytes] = []
        self.chains: list[bytes] = []
        """Hex of the chain at each n: every answer and event with it is the right one, and all before it were."""
        self._sigs: list[str] = []
        self._emptied = 0

    def sign(self, count: int, ts: int | None = None, body: bytes = BODY) -> None:
        """Sign so many further envelopes, at `ts` (now)."""
        ts = ts or int(time.time())
        for n in range(len(self.frames), len(self.frames) + count):
            self._sign(n, ts, body)

    def _sign(self, n: int, ts: int, body: bytes) -> None:
        sender, to = self.parties[n % 2], self.parties[1 - n % 2]
        prev = self._sigs[-1] if n else bootstrap(self.conv)
        chain = bytes.fromhex(self.chains[-1].decode()) if n else chain_start(self.conv)
        conv, pk = self.conv.encode(), sender.key.pk.encode()
        kind = b"CALL" if n == 0 else b"PICKUP" if n == 1 else b"QUOTE"
        if n == 0:
            body = b'{"code_from":"%b","code_to":"%b","wire":"%b"}' % (
                sender.code.encode(), to.code.encode(), sender.wire.encode(),
            )  # fmt: skip
        envelope = b'{"body":%b,"conv":"%b","from":"%b","n":%d,"prev_sig":"%b","to":"%b","ts":%d,"type":"%b"}' % (
            body, conv, pk, n, prev.encode(), to.key.pk.encode(), ts, kind,
        )  # fmt: skip
        sig = crypto_sign(envelope, sender.secret)[:64].hex()
        tail = b'"from_pk":"%b","sig":"%b","envelope":%b}}' % (pk, sig.encode(), envelope)
        if n == 0:
            head = b'"method":"send_call","params":{"to_code":"%b",' % to.code.encode()
        else:
            head = b'"method":"send_env","params":{"conv":"%b","n":%d,' % (conv, n)
            chain = chain_next(chain, sig)
        self._sigs.append(sig)
        self.frames.append(frame(b'{"jsonrpc":"2.0","id":%d,%b%b' % (self.index << 24 | n, head, tail)))
        self.chains.append(chain.hex().encode())

    def rewind(self, sent: int) -> None:
        """Of the first `sent` envelopes drop the frames; drop those after them wholly, to be signed anew."""
        for kept in (self.frames, self.chains, self._sigs):
            del kept[sent:]
        self.frames[self._emptied :] = [b""] * (sent - self._emptied)
        self._emptied = sent


def check_transcript(socket: Socket, line: Line, count: int) -> str | None:
    """Read a conversation back and prove it offline: what is wrong with it, or None.

    It must hold exactly the `count` envelopes that were acknowledged, each signature, link and chain right.
    """
    rows: list[Any] = []
    after: int | None = -1
    while after is not None:
        page = socket.ask("read_conv", {"conv": line.conv, "after": after, "limit": PAGE})
        rows += page["rows"]
        after = page.get("next")
    verdict = verify_transcript(rows)
    if not verdict.ok:
        return f"{line.conv}: {verdict.broken}"
    if len(rows) != count:
        return f"{line.conv}: {len(rows)} envelopes were stored, {count} acknowledged"
    if count and rows[-1]["chain"].encode() != line.chains[count - 1]:
        return f"{line.conv}: the chain is not the one that was signed"
    return None


def check_transcripts(socket: Socket, lines: Sequence[Line], counts: Sequence[int]) -> list[str]:
    """`check_transcript` of each; what is wrong with any of them."""
    found = (check_transcript(socket, *each) for each in zip(lines, counts, strict=True))
    return [each for each in found if each is not None]

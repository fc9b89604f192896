"""Asking the client's user before something is signed: once for one deed, and for no other.

1. An approval is for one envelope: its type, its body, its counterparty and its place in the call. If any of
   these has changed when the answer comes, the user is asked again.
2. An approval is used up by its first use (MCP 2026-07-28, Multi Round-Trip Requests: at most once is the
   server's business; the seal of requestState binds it to the request and its time).
3. Who can't be asked is refused: silence is no consent.

Source: MCP 2025-06-18 and later, Elicitation; 2026-07-28, Multi Round-Trip Requests.
"""

import secrets
from collections import OrderedDict
from typing import Final

import msgspec

from gateways.agent.rails import Blocked
from gateways.client.show import printable
from gateways.mcp import asking
from gateways.mcp.revisions import BARE
from gateways.mcp.surface import Ask, Needs

KEY: Final = "sign"
_MOST: Final = 64
"""Questions that may be open at a time; the oldest are forgotten."""
_WAY_OUT: Final = "Ask the person who runs the agent; without their consent it is not signed."


class Deed(msgspec.Struct, frozen=True):
    """One envelope that is about to be signed. Bodies are JSON text. `call`: empty for a CALL.

    `answers`: the type and body of the other party's envelope before it.
    """

    type: str
    body: str
    pk: str
    code: str
    call: str = ""
    n: int = 0
    answers: tuple[str, str] | None = None

    def question(self) -> str:
        """What the user is asked. Bodies are shown whole, as data, each on one line: none can pass for our words.

        What it answers stands there too: a HIT says little without the QUOTE.
        """
        where = f", call {self.call}, n = {self.n}" if self.call else ""
        lines = [f"Sign {self.type} to {self.code or 'a desk'} (key {self.pk[:16]}…{where})?"]
        lines.append(f"Body that will be signed: {printable(self.body)}")
        if self.answers is not None:
            lines.append(f"It answers their {self.answers[0]}, in their words: {printable(self.answers[1])}")
        return "\n".join(lines)


class Approvals:
    """The questions that are open."""

    def __init__(self) -> None:
        self._open: OrderedDict[str, Deed] = OrderedDict()

    def judge(self, ask: Ask, deed: Deed) -> Needs | Blocked | None:
        """None: approved. Needs: the question. Blocked: declined, or nobody can be asked."""
        if ask.revision == BARE or not asking.can_ask(ask):  # that revision knows no such question
            return Blocked(
                "ask_before",
                f"the agent's settings ask the user before each {deed.type}, and this client can't ask",
                "Use a client that can ask its user (elicitation), or have the settings changed.",
                {"answer": "cannot_ask"},
            )
        asked = self._open.pop(ask.state, None) if ask.state is not None else None
        answer = ask.answers.get(KEY)
        if asked != deed or not isinstance(answer, dict):
            return self._question(deed)
        if answer.get("action") == "accept":
            return None
        declined = "declined" if answer.get("action") == "decline" else "dismissed"
        return Blocked(
            "ask_before", f"the user {declined} it: nothing was signed", _WAY_OUT, {"answer": declined}
        )

    def _question(self, deed: Deed) -> Needs:
        name = secrets.token_hex(16)
        self._open[name] = deed
        if len(self._open) > _MOST:
            self._open.popitem(last=False)
        return Needs({KEY: asking.form(deed.question(), {})}, state=name)

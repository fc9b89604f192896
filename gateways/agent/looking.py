"""What the model may look at: who it is, what was said, and whether a transcript holds.

1. Nothing here signs an envelope. Reading may take a follow statement, which is a capability to read alone.
2. `verify` believes nothing that the wire says: it walks the transcript with the code of `turret verify`.
"""

from typing import Any, Final

import msgspec

from broker.wire.chain import Verdict, verify_transcript
from broker.wire.refusals import Refusal, refuse
from gateways.agent.answers import Fault, Said
from gateways.agent.calls import ring_event
from gateways.agent.line import Line
from gateways.client.dealer import Desk
from gateways.client.errors import Refused, WireFault
from gateways.client.export import read_lines
from gateways.client.link import settle
from gateways.client.signer import join_params
from gateways.mcp.results import plain

READ_S: Final = 20.0
"""Seconds that one reading may take."""

Answer = Said | Refusal | Fault


class Looking:
    """The tools that change nothing, over one line. Raises DealerError besides what it answers."""

    def __init__(self, line: Line) -> None:
        self._line = line

    async def who(self) -> Answer:
        """The key, its desk, the settings, and all open calls and rings. Answers without a connection, too."""
        line = self._line
        await line.tried()
        desk = line.present
        value: dict[str, Any] = {
            "pk": line.own,
            "code": desk.code if desk is not None else None,
            "wire": desk.wire if desk is not None else None,
            "connected": desk is not None,
            "rails": line.rails.shown(),
            "calls": line.board.states(),
            "rings": [ring_event(ring) for ring in line.board.rings()],
        }
        if desk is not None:
            value |= {"now_ms": desk.now_ms(), "elsewhere": await self._elsewhere(desk)}
        for name, no in (("desk_refused", line.unopened), ("ended", line.ended)):
            if no is not None:
                value[name] = no.body()
        code = plain(value["code"]) if value["code"] else "none opened"
        words = f"Your key is {line.own}, your desk: {code}. {len(value['calls'])} call(s) are held."
        return Said(words, value, untrusted=True)

    async def _elsewhere(self, desk: Desk) -> list[str]:
        """Open conversations of this key that the agent does not hold: left from before, or another process's."""
        with self._line.within(READ_S):
            try:
                found = await desk.ask("list_convs", state="open", **desk.link.proof())
                convs = [str(each["conv"]) for each in found["convs"]]
            except (Refused, KeyError, TypeError):
                return []
            return [conv for conv in convs if conv not in self._line.board.calls]
        return []

    async def read(self, conv: str, after: int | None, limit: int) -> Answer:
        """The rows of a conversation from after `after` on, without what only a verifier needs."""
        found = await self._line.desk()
        if not isinstance(found, tuple):
            return found
        desk = found[0]
        params = {"conv": conv, "limit": limit, **desk.link.proof()}
        with self._line.within(READ_S):
            page = await desk.ask("read_conv", **params if after is None else {**params, "after": after})
            return _page(page, self._line.own)
        return self._line.ended or refuse("unavailable", f"the wire did not answer in {READ_S:g} s")

    async def verify(self, conv: str) -> Answer:
        """Read the whole transcript and verify it here. A transcript that doesn't hold is a result, not an error."""
        found = await self._line.desk()
        if not isinstance(found, tuple):
            return found
        desk = found[0]

        async def ask(tool: str, params: dict[str, Any]) -> bytes:
            return await settle(desk.link, tool, join_params(params))

        with self._line.within(READ_S):
            lines = await read_lines(ask, conv, desk.link.proof())
            return _verdict(verify_transcript(lines, (desk.wire,)), conv)
        return self._line.ended or refuse(
            "unavailable", f"the wire did not give the transcript in {READ_S:g} s"
        )


def _page(page: dict[str, Any], own: str) -> Said:
    """A page of read_conv for a model: who said what, when. Raises WireFault for what is none."""
    try:
        wire_or_them = {page["parties"][role]["pk"]: role for role in ("caller", "called")}
        rows = [_row(row, own, wire_or_them) for row in page["rows"]]
        head: dict[str, Any] = {"conv": page["conv"], "state": page["state"], "parties": page["parties"]}
    except (KeyError, TypeError):
        raise WireFault("the answer to read_conv can't be read") from None
    value = {**head, "rows": rows, **({"next": page["next"]} if page.get("next") is not None else {})}
    more = f" More follows: read again with after={plain(page['next'])}." if "next" in value else ""
    words = f"Conversation {plain(head['conv'])} is {plain(head['state'])}; {len(rows)} row(s) here.{more}"
    return Said(words, value, untrusted=True)


def _row(row: dict[str, Any], own: str, roles: dict[str, str]) -> dict[str, Any]:
    envelope = row["envelope"]
    sender = envelope["from"]
    return {
        "n": envelope["n"],
        "from": "you" if sender == own else roles.get(sender, "wire"),
        "type": envelope["type"],
        "body": envelope["body"],
        "accepted_at": row.get("accepted_at"),
    }


def _verdict(verdict: Verdict, conv: str) -> Said:
    value: dict[str, Any] = {"holds": verdict.ok and verdict.conv == conv, **msgspec.to_builtins(verdict)}
    for name in ("ok", "received"):  # said by `holds`; no receipts were asked for
        value.pop(name)
    if value["holds"]:
        words = f"It holds: {verdict.rows} envelope(s) of conversation {plain(conv)}, verified here."
    elif verdict.broken is not None:
        at = verdict.broken
        words = (
            f"It does NOT hold: it breaks at n = {plain(at.n)} ({plain(at.code)}). Rely on nothing after it."
        )
    else:
        words = f"It does NOT hold: the wire gave another conversation than {plain(conv)}."
    return Said(words, value, untrusted=True)

"""A small network in memory: FakeWire with tokens, an agent's stream, an inbox and channels.

One agent is played for: `stream` is what comes to it, `inbox` its messages, `posts` the channels. `effects` holds every
change by its idempotency key, so that a repetition can be told from another.
"""

import contextlib
from collections import defaultdict
from typing import Any

import msgspec
import trio

from broker.wire.refusals import Refusal, refuse
from gateways import jsonrpc
from tests.gateways.client.fake_issuer import FakeIssuer
from tests.gateways.client.fake_wire import FakeWire, Session

AGENT = "ag_01JZ6M5VQW8T3N4R2P7X9Y0ABC"
OTHER = "ag_01JZ6M5VQW8T3N4R2P7X9Y0ABD"
CHANNEL = "ch_01JZ6M5VQW8T3N4R2P7X9Y0ABC"


class FakeNetwork(FakeWire):
    """`trimmed`: cursors before this position are no good; `reason`: what is told then."""

    def __init__(self, issuer: FakeIssuer) -> None:
        super().__init__()
        self.issuer = issuer
        self.stream: list[tuple[str, dict[str, Any]]] = []
        self.inbox: list[dict[str, Any]] = []
        self.posts: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self.lost: dict[str, int] = defaultdict(int)
        """Channel → messages at its beginning that are gone."""
        self.members = {CHANNEL}
        self.effects: dict[tuple[str, str], Any] = {}
        self.shown: list[str] = []
        """Every token that was shown, in order."""
        self.epoch = "e"
        self.trimmed = 0
        self.reason: str | None = None
        self._speakers: dict[int, str] = {}
        self._followed: dict[int, dict[str, int]] = defaultdict(dict)
        self._news = trio.lowlevel.ParkingLot()

    def message(self, body: str, **members: Any) -> dict[str, Any]:
        """A message of another agent arrives: in the inbox, and on the stream."""
        number = len(self.inbox) + 1
        made = {
            "message_id": f"msg_{number:04}",
            "from_agent_id": OTHER,
            "from_name": "brav",
            "to_agent_id": AGENT,
            "body": body,
            "in_reply_to": None,
            "sent_at": self.now_ms(),
            "hops": 0,
            "read": False,
            **members,
        }
        self.inbox.append(made)
        self.happen("message", made)
        return made

    def happen(self, kind: str, data: dict[str, Any]) -> None:
        """An event on the agent's stream."""
        self.stream.append((kind, data))
        self._news.unpark_all()

    async def say(self, body: str, channel: str = CHANNEL, by: str = OTHER) -> int:
        """A message in a channel; who follows gets it."""
        rows = self.posts[channel]
        made = {
            "channel_id": channel,
            "seq": self.lost[channel] + len(rows) + 1,
            "message_id": f"msg_{len(rows):04}",
            "agent_id": by,
            "name": "brav",
            "body": body,
            "at": self.now_ms(),
        }
        rows.append(made)
        await self.push()
        return int(made["seq"])

    async def push(self) -> None:
        await super().push()
        for session in list(self.sessions):
            for channel, position in list(self._followed[id(session)].items()):
                for row in self.posts[channel][max(0, position - self.lost[channel]) :]:
                    self._followed[id(session)][channel] = row["seq"]
                    cursor = f"c.{self.epoch}.{row['seq']}"
                    await session.send(
                        jsonrpc.notification("channel_message", {"cursor": cursor, "own": False, **row})
                    )

    async def end_tokens(self, code: int = 4001) -> None:
        """All tokens lose their right, and their connections end."""
        self.issuer.live.clear()
        await self.drop_all(code, "the authentication has run out")

    async def _request(self, session: Session, request: jsonrpc.Request) -> None:
        if request.method != "wait_for_events" or self.scripts["wait_for_events"]:
            await super()._request(session, request)
        elif self._speaker(session) is None:
            no = refuse("unauthenticated", "the token has run out")
            await session.send(jsonrpc.error(request.id, jsonrpc.REFUSED, no.message, no.body()))
        else:
            assert self._nursery is not None
            self._nursery.start_soon(self._wait, session, request)

    async def _wait(self, session: Session, request: jsonrpc.Request) -> None:
        params = msgspec.json.decode(request.params)
        with trio.move_on_after(params.get("wait_ms", 0) / 1000):
            while not (page := self._page(params))["events"]:
                await self._news.park()
        with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            await session.send(jsonrpc.result(request.id, page))

    def _page(self, params: dict[str, Any]) -> dict[str, Any]:
        head, after = len(self.stream), params.get("after")
        position, reason = head, None
        if after == "0":
            position = self.trimmed
        elif after is not None:
            _, epoch, number = after.split(".")
            position = int(number)
            if epoch != self.epoch:
                position, reason = head, self.reason or "epoch_changed"
            elif position < self.trimmed:
                position, reason = self.trimmed, "trimmed"
        rows = self.stream[position : position + params["limit"]]
        events = [
            {"event": kind, "cursor": f"s.{self.epoch}.{position + i + 1}", "own": False, **data}
            for i, (kind, data) in enumerate(rows)
        ]
        resume = {
            "recovered": reason is None,
            "from": f"s.{self.epoch}.{position}",
            "head": f"s.{self.epoch}.{head}",
        }
        if reason is not None:
            resume["reason"] = reason
        return {"resume": resume, "events": events, "cursor": f"s.{self.epoch}.{position + len(rows)}"}

    def do_wait_for_events(self, session: Session, params: dict[str, msgspec.Raw]) -> object:
        return self._page({name: msgspec.json.decode(value) for name, value in params.items()})

    def _speaker(self, session: Session) -> str | None:
        token = self._speakers.get(id(session))
        return self.issuer.live.get(token) if token is not None else None

    def do_authenticate(self, session: Session, params: dict[str, msgspec.Raw]) -> object:
        token = msgspec.json.decode(params["token"])
        self.shown.append(token)
        if token not in self.issuer.live:
            return refuse("unauthenticated", "the token is not valid here, or not any more")
        self._speakers[id(session)] = token
        return {"principal": self.issuer.live[token], "agent_id": self.issuer.live[token]}

    def do_follow(self, session: Session, params: dict[str, msgspec.Raw]) -> object:
        channel = msgspec.json.decode(params["channel"])
        if channel not in self.members:
            return refuse("not_a_party", "you are not a member of this channel; join_channel first")
        head = self.lost[channel] + len(self.posts[channel])
        after = msgspec.json.decode(params["after_seq"]) if "after_seq" in params else head
        reason = None
        if after > head:
            after, reason = head, "future"
        elif after < self.lost[channel]:
            after, reason = self.lost[channel], "trimmed"
        self._followed[id(session)][channel] = after
        resume = {"recovered": reason is None, "from": "c", "head": "c", "from_seq": after, "head_seq": head}
        return resume if reason is None else {**resume, "reason": reason}

    def do_unfollow(self, session: Session, params: dict[str, msgspec.Raw]) -> object:
        self._followed[id(session)].pop(msgspec.json.decode(params["channel"]), None)
        return {"ended": 1}

    def do_get_channel_history(self, session: Session, params: dict[str, msgspec.Raw]) -> object:
        given = {name: msgspec.json.decode(value) for name, value in params.items()}
        channel = given["channel_id"]
        found = [row for row in self.posts[channel] if row["seq"] > given["after_seq"]][: given["limit"]]
        return {
            "channel_id": channel,
            "messages": found,
            "head": self.lost[channel] + len(self.posts[channel]),
        }

    def do_get_inbox(self, session: Session, params: dict[str, msgspec.Raw]) -> object:
        given = {name: msgspec.json.decode(value) for name, value in params.items()}
        rows = [each for each in reversed(self.inbox) if not (given["unread_only"] and each["read"])]
        first = int(given.get("after", 0))
        page = rows[first : first + 3]  # small pages, so that paging is tried
        more = {"next": str(first + 3)} if first + 3 < len(rows) else {}
        return {"messages": page, "unread": 0, **more}

    def do_whoami(self, session: Session, params: dict[str, msgspec.Raw]) -> object:
        agent_id = self._speaker(session)
        return refuse("unauthenticated", "no token") if agent_id is None else {"agent_id": agent_id}

    def do_join_channel(self, session: Session, params: dict[str, msgspec.Raw]) -> object:
        return self._once("join_channel", params, self.members.add)

    def do_send_direct_message(self, session: Session, params: dict[str, msgspec.Raw]) -> object:
        def sent(_: Any) -> dict[str, Any]:
            return {
                "message_id": f"msg_{len(self.effects):04}",
                "to_agent_id": msgspec.json.decode(params["recipient_agent_id"]),
                "sent_at": self.now_ms(),
                "hops": 0,
            }

        return self._once("send_direct_message", params, sent)

    def _once(self, tool: str, params: dict[str, msgspec.Raw], run: Any) -> Any:
        key = tool, msgspec.json.decode(params["idempotency_key"])
        if key not in self.effects:
            first = next(iter(params.values()))
            answer = run(msgspec.json.decode(first))
            self.effects[key] = answer if isinstance(answer, dict | Refusal) else {}
        return self.effects[key]

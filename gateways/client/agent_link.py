"""An agent's connection: one WebSocket at a time that speaks by a token, and the channels that are followed over it.

1. The token is renewed in place before it runs out. One that the broker ends (close 4001) is dropped: another is
   asked for, and where the key gets none the link ends, so that nothing is tried again with what is dead.
2. A channel is followed from the last message that came, over whatever connection there is.
3. Before a token is shown the other end has shown the pinned wire's key.

Source: wire.md, WebSocket; network.md, Sign-in and Channels.
"""

import ssl
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeVar

import msgspec
import trio

from broker.wire.refusals import Refusal, refuse
from gateways.client.clockwork import Backoff
from gateways.client.errors import Disconnected, Refused, WireFault
from gateways.client.link import ANSWER_S, PASSING, WebSocketLink, read_resume, settle
from gateways.client.signer import Signer, join_params
from gateways.client.socket import GOODBYE_S, Socket, read_refusal
from gateways.client.token import Token, Tokens

T = TypeVar("T")
AUTH_ENDED: Final = 4001
"""The close code for a token that has run out or lost its right."""
AT_ONCE_S: Final = 10.0
ENDED_AT_ONCE: Final = 3
"""So many tokens in a row may be ended within AT_ONCE_S seconds after they were shown; then it is no accident."""


class Follower(Protocol):
    """Who follows a channel. Plain calls: they never block."""

    channel_id: str
    heard: int | None
    """The seq of the last message that came; None: from now."""

    def post(self, params: bytes) -> None:
        """A message, as JSON text."""
        ...

    def resumed(self, from_seq: int, reason: str | None) -> None:
        """The stream goes on after this seq; `reason`: why not after the one that was asked for."""
        ...

    def end(self, refusal: Refusal) -> None:
        """It is followed no more."""
        ...


class _Posted(msgspec.Struct):
    channel_id: str


class _Ended(msgspec.Struct):
    channel: str | None = None
    refusal: dict[str, Any] = {}


class AgentLink(WebSocketLink):
    """See the module. `signer` knows the pinned wire and the time there."""

    def __init__(
        self,
        url: str,
        signer: Signer,
        tokens: Tokens,
        *,
        ssl_context: ssl.SSLContext | None = None,
        backoff: Backoff | None = None,
    ) -> None:
        super().__init__(url, signer, ssl_context=ssl_context, backoff=backoff)
        self.tokens = tokens
        self._renewal = backoff or Backoff()
        self._token: Token | None = None
        self._proving = trio.Lock()
        self._shown_at = 0.0
        self._ended_early = 0
        self._followers: dict[str, Follower] = {}

    async def request(self, method: str, params: bytes, timeout_s: float = ANSWER_S) -> bytes:
        """As a link does; a token that is not taken (any more) is replaced by another, once."""
        while (socket := self._socket) is None:
            await self._up.wait()
        token = self._token
        try:
            return await socket.request(method, params, timeout_s)
        except Refused as no:
            if no.code != "unauthenticated" or token is None:
                raise
        async with self._proving:
            if self._token is token:
                await self._show(socket, await self.tokens.get(instead_of=token))
        return await socket.request(method, params, timeout_s)

    async def follow(self, follower: Follower) -> None:
        """Follow a channel until `unfollow`, across breaks. Raises Refused, ValueError where that is done already.
        Cancelling follows nothing."""
        if follower.channel_id in self._followers:
            raise ValueError("this channel is open already")
        self._followers[follower.channel_id] = follower
        try:
            answer = await settle(self, "follow", _wanted(follower))
        except BaseException:
            self._followers.pop(follower.channel_id, None)
            raise
        _resumed(follower, answer)

    async def unfollow(self, follower: Follower) -> None:
        """Hear no more of a channel. What the wire makes of it is waited for briefly: the connection may be gone."""
        if self._followers.get(follower.channel_id) is not follower:
            return
        del self._followers[follower.channel_id]
        if self._socket is not None:
            try:
                params = join_params({"channel": follower.channel_id})
                await self._socket.request("unfollow", params, GOODBYE_S)
            except (Refused, Disconnected):
                return

    async def _connection(self, up: Callable[[], None]) -> None:
        await self.tokens.get()  # without one there is nothing to connect for
        try:
            await super()._connection(up)
        except Disconnected as lost:
            if lost.close_code != AUTH_ENDED or (token := self._token) is None:
                raise
            early = trio.current_time() < self._shown_at + AT_ONCE_S
            self._ended_early = self._ended_early + 1 if early else 0
            if self._ended_early >= ENDED_AT_ONCE:
                raise Refused(refuse("unauthenticated", f"each token is ended at once: {lost}")) from None
            await self.tokens.get(instead_of=token)  # or why there is none
            raise

    async def _authenticate(self, socket: Socket) -> None:
        await self._greeting()
        token = await self.tokens.get()
        try:
            await self._show(socket, token)
        except Refused as no:
            if no.code != "unauthenticated":
                raise
            await self._show(socket, await self.tokens.get(instead_of=token))

    async def _show(self, socket: Socket, token: Token) -> None:
        await socket.request("authenticate", join_params({"token": token.text}), ANSWER_S)
        self._token, self._shown_at = token, trio.current_time()

    async def _follow(self, socket: Socket) -> None:
        """Go on with each channel. One that may not be followed any more is told so; the others go on."""
        for follower in list(self._followers.values()):
            try:
                answer = await socket.request("follow", _wanted(follower), ANSWER_S)
            except Refused as no:
                if no.code in PASSING or no.code == "unauthenticated":
                    raise
                self._end(follower, no.refusal)
            else:
                _resumed(follower, answer)

    async def _stay(self, socket: Socket) -> None:
        """Renew the token in place, each time before it runs out."""
        while True:
            assert self._token is not None  # it was shown before the connection was up
            with trio.move_on_at(self._token.renew_at):
                await super()._stay(socket)
            await self._renew(socket)

    async def _renew(self, socket: Socket) -> None:
        async with self._proving:
            try:
                fresh = await self.tokens.get()
            except Disconnected as lost:
                wait = self._renewal.next_s(lost.retry_after_s)
            else:
                wait = 0 if fresh is not self._token else self._renewal.next_s()
                if wait == 0:
                    await self._show(socket, fresh)
                    self._renewal.reset()
        await trio.sleep(wait)

    def _notify(self, method: str, params: bytes) -> None:
        if method == "hello":
            super()._notify(method, params)
        elif method == "channel_message":
            follower = self._followers.get(_read(params, _Posted).channel_id)
            if follower is not None:
                follower.post(params)
        elif method == "ended":
            ended = _read(params, _Ended)
            refusal = read_refusal(ended.refusal)
            follower = self._followers.get(ended.channel or "")
            if refusal is None or refusal.code in PASSING:
                self._ended.set()  # all begin anew, after a while
            elif follower is not None:
                self._end(follower, refusal)

    def _end(self, follower: Follower, refusal: Refusal) -> None:
        self._followers.pop(follower.channel_id, None)
        follower.end(refusal)


def _wanted(follower: Follower) -> bytes:
    wanted: dict[str, Any] = {"channel": follower.channel_id}
    return join_params(wanted if follower.heard is None else {**wanted, "after_seq": follower.heard})


def _resumed(follower: Follower, answer: bytes) -> None:
    resume = read_resume(answer)
    follower.resumed(resume.from_seq or 0, resume.reason)


def _read(params: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(params, type=kind)
    except (msgspec.MsgspecError, RecursionError):
        raise WireFault("a notification of the wire can't be read") from None

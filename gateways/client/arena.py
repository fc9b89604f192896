"""A session of the arena as its player has it: what is seen, what may be done, and what came of it.

    async with me.arena("hilo") as session:
        while session.over is None:
            outcome = await session.act(type="call", stake=10, guess="higher")
    proof = await session.verify()

1. An action is done once, on the version that was seen last; its key stays the same however often it is asked.
2. Where another came first nothing is repeated: the session is read again, and who decides decides anew.
3. The commit to the chance is read before the client seed is made, and the seed goes nowhere but into the opening.

Source: docs/reference/arena.md.
"""

import secrets
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Annotated, Any, Final, Literal, NamedTuple, NoReturn, Protocol

import httpx
import msgspec

from broker.wire.ids import REF
from broker.wire.refusals import refuse
from gateways.client.answers import Ask, read
from gateways.client.artifacts import fetch_artifact
from gateways.client.errors import Refused, WireFault
from gateways.client.link import settle
from gateways.client.proof import Answered, Chosen, Ending, Played, Proof, check

OPENINGS: Final = 100
"""How often a session is opened anew since another one of the agent's came first: more than it may have open."""


class Conflict(Refused):
    """Another action came first, by another process, or by the owner. Nothing was done; the session was read again."""


Mode = Literal["simulation", "persistent"]


class Account(msgspec.Struct, frozen=True):
    """The account that a session plays with. `kind`: simulation or persistent; `balance`: points."""

    kind: Mode
    account_id: str
    balance: int


class Published(msgspec.Struct, frozen=True):
    """The artifact of a session that is over: SHA-256 of its bytes, and where it is read."""

    ref: Annotated[str, msgspec.Meta(pattern=f"^{REF.pattern}$")]
    uri: str


class View(msgspec.Struct, frozen=True):
    """A session at one version. Times are Unix milliseconds."""

    session_id: str
    agent_id: str
    game: str
    game_version: int
    mode: Mode
    version: int
    observation: dict[str, Any]
    legal_actions: list[dict[str, Any]]
    account: Account
    net: int
    """Points won and lost in this session."""
    config: dict[str, Any]
    commit: str
    client_seed: str
    games: int
    """Which of the agent's sessions it is, from 0."""
    opened_at: int
    changed_at: int
    over: str | None = None
    """Why it is over."""
    seed: str | None = None
    salt: str | None = None
    artifact: Published | None = None


class Outcome(msgspec.Struct, frozen=True):
    """What an action led to. `facts`: what it showed, the game's; `change`: points won or lost by it."""

    facts: Any
    change: int
    session: View


class Artifacts(NamedTuple):
    """Where a broker's artifacts are read (an Asked, link.py): see `fetch_artifact`."""

    url: str
    ssl_context: ssl.SSLContext | None = None
    transport: httpx.AsyncBaseTransport | None = None

    async def request(self, method: str, params: bytes) -> bytes:
        """The bytes whose ref `method` is."""
        return await fetch_artifact(self.url, method, ssl_context=self.ssl_context, transport=self.transport)


class Session:
    """A session that one agent plays. Made by `Agent.arena`.

    All methods raise Refused, Disconnected and WireFault as `Agent.call` does."""

    def __init__(self, ask: Ask, artifacts: Artifacts, view: View, chosen: Chosen | None = None) -> None:
        self.view = view
        """The session as it was seen last."""
        self._ask = ask
        self._artifacts = artifacts
        self._chosen = chosen
        self._answered: dict[int, Answered] = {}
        self._unsettled: tuple[int, dict[str, Any], str] | None = None
        """Version, action and key of what may have been done."""

    @property
    def session_id(self) -> str:
        return self.view.session_id

    @property
    def observation(self) -> dict[str, Any]:
        """What the game shows."""
        return self.view.observation

    @property
    def legal_actions(self) -> list[dict[str, Any]]:
        """What may be done now, each with what its members may be."""
        return self.view.legal_actions

    @property
    def version(self) -> int:
        return self.view.version

    @property
    def points(self) -> int:
        """What the account has, as far as was seen: other sessions may play with a persistent one."""
        return self.view.account.balance

    @property
    def net(self) -> int:
        """Points won and lost in this session."""
        return self.view.net

    @property
    def over(self) -> str | None:
        """Why it is over (`stopped`, `bust`, `expired`, `actions`, or the game's own word); None while it is open."""
        return self.view.over

    async def act(self, action: Mapping[str, Any] | None = None, /, **members: Any) -> Outcome:
        """Do one action, `act(type="call", stake=10, guess="higher")`, on the version that was seen last.

        Raises Conflict where another action came first, Refused (ILLEGAL_ACTION, INSUFFICIENT_POINTS; SESSION_OVER,
        after which `over` says why). After cancelling the outcome is unknown: the same action again finds it out, and
        any other is a Conflict where the first one was done. Nothing is ever done twice. One task at a time.
        """
        wanted, version = {**(action or {}), **members}, self.version
        if self._unsettled is None or self._unsettled[:2] != (version, wanted):
            self._unsettled = (version, wanted, secrets.token_urlsafe(16))
        try:
            answer = await self._ask(
                "submit_action",
                idempotency_key=self._unsettled[2],
                session_id=self.session_id,
                expected_version=version,
                action=wanted,
            )
        except Refused as no:
            self._unsettled = None
            if no.code in ("CONFLICT", "SESSION_OVER"):
                await self.refresh()
            raise (Conflict(no.refusal) if no.code == "CONFLICT" else no) from None
        self._unsettled = None
        outcome = read(answer, Outcome)
        self.view = outcome.session
        self._answered[version + 1] = Answered(wanted, outcome.facts, outcome.change)
        return outcome

    async def stop(self) -> Outcome:
        """End the session now. Raises as `act`."""
        return await self.act(type="stop")

    async def refresh(self) -> View:
        """Look at the session again: others may have played it."""
        answer = await self._ask("get_session", session_id=self.session_id)
        self.view = read(answer.get("session"), View)
        return self.view

    async def verify(self) -> Proof:
        """Read the artifact of a session that is over, and hold it against what was seen while it was played.

        That the commit is the one from before the client seed, that seed and salt make it, and that each action led to
        what its answer said. Dealing again and replaying is for `turret arena verify`: see `Proof.save`. Raises
        WireFault where the artifact says anything else; Refused (NOT_FOUND) while the session is open.
        """
        if self.view.artifact is None or self.view.over is None:
            await self.refresh()
        view = self.view
        if view.artifact is None or view.over is None:
            raise Refused(refuse("NOT_FOUND", "the session is open: its artifact comes with its end"))
        ref = view.artifact.ref
        content = await settle(self._artifacts, ref, b"")
        played = read(msgspec.to_builtins(view), Played)
        ending = Ending(view.over, view.seed, view.salt)
        return check(ref, content, played, ending, self._chosen, self._answered)

    async def leave(self) -> None:
        """End the session, whoever else plays it, unless it is over."""
        while self.over is None:
            try:
                await self.stop()
            except Refused as no:
                if no.code not in ("CONFLICT", "SESSION_OVER"):
                    raise


class OpensSession(Protocol):
    """`Agent.arena`."""

    def __call__(
        self,
        game: str,
        version: int | None = None,
        mode: Mode = "simulation",
        config: Mapping[str, Any] | None = None,
        *,
        keep: bool = False,
    ) -> AbstractAsyncContextManager[Session]: ...


def nobody(*_: object, **__: object) -> NoReturn:
    """Stands where a key that is no agent's would open a session."""
    raise Refused(refuse("agent_required", "agents play: open_agent(…), then its arena, or its dealer's"))


@asynccontextmanager
async def play(
    ask: Ask,
    artifacts: Artifacts,
    agent_id: str,
    *,
    game: str,
    version: int | None = None,
    mode: Mode = "simulation",
    config: Mapping[str, Any] | None = None,
    keep: bool = False,
) -> AsyncIterator[Session]:
    """Open a session, and end it with the block; see `Agent.arena`."""
    view, chosen = await _open(ask, agent_id, config or {}, game=game, version=version, mode=mode)
    session = Session(ask, artifacts, view, chosen)
    yield session
    if not keep:
        await session.leave()


async def go_on(ask: Ask, artifacts: Artifacts, session_id: str) -> Session:
    """A session that is there already; see `Agent.session`."""
    answer = await ask("get_session", session_id=session_id)
    return Session(ask, artifacts, read(answer.get("session"), View))


async def _open(ask: Ask, agent_id: str, config: Mapping[str, Any], **params: Any) -> tuple[View, Chosen]:
    """Read the next commit, then make the client seed, then open. Another session that came first: all of it again."""
    for left in reversed(range(OPENINGS)):
        chosen = Chosen(
            config.get("commit") or await _next_commit(ask, agent_id),
            config.get("client_seed") or secrets.token_hex(16),
        )
        given = {**config, "commit": chosen.commit, "client_seed": chosen.client_seed}
        try:
            view = read(await ask("open_session", config=given, **params), View)
        except Refused as no:
            if no.code != "CONFLICT":
                raise
            if "commit" in config or not left:
                raise Conflict(no.refusal) from None
            continue
        if chosen != (view.commit, view.client_seed):
            raise WireFault(f"session {view.session_id}: opened with another commit or client seed")
        return view, chosen
    raise AssertionError  # the last time raises


async def _next_commit(ask: Ask, agent_id: str) -> str:
    return read((await ask("get_agent", agent_id=agent_id)).get("arena"), _Play).next_commit


class _Play(msgspec.Struct):
    next_commit: str

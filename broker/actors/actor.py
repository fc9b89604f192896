"""The actor: one task, one state, one log stream, one bounded mailbox.

1. `post` puts a letter without waiting; a full mailbox is answered at once (overloaded): back-pressure is an answer.
2. Letters are handled one by one: decide, commit the record if there is one, fold it, answer. What need not wait to
   be decided is decided where the letter arrives (`decide`), and settled where its commit lands, with no turn of the
   loop; the actor's task takes what has to wait (`handle`).
3. Nothing ends a commit but its bound. A caller's cancellation ends its wait, never the command. A commit in doubt
   ends the actor: the next one reads the log again, it never guesses.
4. An idle actor leaves. On leaving it turns away what waits (GONE), with no checkpoint between draining and closing.
"""

import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

import trio

from broker.actors.overdue import Flight, Overdue
from broker.parking import Parked
from broker.store.port import Conflict, InDoubt, Store, Unavailable, Unit
from broker.wire.refusals import Refusal, refuse

log = logging.getLogger("turret.actors")

StateT = TypeVar("StateT")
Then = Callable[[Any], object]
"""Takes the answer to one letter, once, on the loop. It neither waits nor raises."""


class Again:
    """An answer that says nothing about the command: ask again, another actor reads the log."""


class Gone(Again):
    """The answer of an actor that left before it took the letter."""


GONE: Final = Gone()


class NotNow:
    """What `decide` gives where it would have to wait."""


NOT_NOW: Final = NotNow()


class Crashed(Again, Exception):
    """The actor met an unexpected fault while it held this letter; its state is read from the log again."""


class Stop(Exception):
    """Raised inside an actor to end it after its present letter was answered."""


class Write:
    """A decision, made at `began` (Trio's clock): commit `unit`, then `settle` folds it and gives the answer."""

    __slots__ = ("began", "unit")
    began: float
    unit: Unit

    def settle(self, refused: Refusal | None) -> Any:
        """After the commit: the answer; where it was refused, the refusal, and what follows from it."""
        raise NotImplementedError


class Reply:
    """Where the answer to one letter arrives. One waiter."""

    __slots__ = ("_answer", "_done", "_parked")

    def __init__(self) -> None:
        self._done = False
        self._answer: Any = None
        self._parked = Parked()

    async def wait(self) -> Any:
        """The answer. Cancelling ends the wait; the command goes on. No checkpoint where the answer is there."""
        if not self._done:
            await self._parked.park()
        return self._answer

    def answer(self, value: Any) -> None:
        """Give the answer once; a second one is dropped."""
        if self._done:
            return
        self._done = True
        self._answer = value
        self._parked.wake()


class Letter:
    """A command, and where its answer goes (None: told, nobody waits)."""

    __slots__ = ("command", "then")

    def __init__(self, command: Any, then: Then | None) -> None:
        self.command = command
        self.then = then

    def answer(self, value: Any) -> None:
        """Hand over the answer, if somebody waits for it."""
        if self.then is not None:
            try:
                self.then(value)
            except Exception:
                # It may run in a callback of the loop's, where an exception would end the whole run.
                log.exception("who asked failed at its answer")


class _Commit(Flight):
    """A commit that an actor's decision led to."""

    __slots__ = ("_actor", "_letter", "_write")

    def __init__(self, deadline: float, actor: "Actor[Any]", letter: Letter, write: Write) -> None:
        self.deadline = deadline
        self.over = False
        self._actor = actor
        self._letter = letter
        self._write = write

    def land(self, error: BaseException | None) -> None:
        """The store's word. After the end of its time it is too late: another actor may have the log."""
        if not self.over:
            self.over = True
            self._actor._conclude(self._letter, self._write, error)

    def expire(self) -> None:
        self.land(InDoubt())


class Actor(ABC, Generic[StateT]):
    """The loop between a mailbox and the log. Subclasses say how to load, and how to handle one command."""

    def __init__(
        self, key: str, *, store: Store, mailbox: int, commit_timeout_s: float, overdue: Overdue | None = None
    ) -> None:
        self.key = key
        self.store = store
        self.state: StateT | None = None
        self.used: float = trio.current_time()
        self.leaving = False
        self.nursery: trio.Nursery
        self._commit_timeout_s = commit_timeout_s
        self._overdue = overdue or Overdue()
        self._limit = mailbox
        self._box: deque[Letter] = deque()
        self._asked = 0
        self._parked = Parked()
        """The actor's own task, while there is nothing that it has to do."""
        self._loaded = trio.Event()
        self._busy = True
        """Whether a letter is being handled, or the state is not read yet."""
        self._flight: _Commit | None = None
        """The last commit that `decide` led to."""
        self._fault: Exception | None = None
        self.gone = False
        """Whether the actor takes no more letters."""
        self._unread: Unavailable | Crashed | None = None
        """Why the state could not be read."""

    @abstractmethod
    async def load(self) -> StateT | None:
        """Read the state from the store; None where there is nothing yet."""

    @abstractmethod
    async def handle(self, command: Any) -> Any:
        """Decide on one command and commit what follows; returns its answer (a Refusal is one).

        Raises Stop when the actor must be read again; anything else unexpected is a crash.
        """

    def decide(self, command: Any) -> Any:
        """The same as far as nothing has to wait: an answer, a Write, or NOT_NOW (then `handle` gets the command)."""
        return NOT_NOW

    def post(self, letter: Letter) -> Refusal | Gone | None:
        """Put a letter in, without waiting: a Refusal when the mailbox is full, GONE when the actor left.

        Its answer may be given before this returns.
        """
        if self.gone:
            return GONE
        if letter.then is not None and self._asked >= self._limit:
            return refuse("overloaded", "too much waits for this one; try again shortly", retry_after_ms=250)
        if self._busy or self._box or not self._do(letter):
            self._box.append(letter)
            if letter.then is not None:
                self._asked += 1
            if not self._busy:
                self._parked.wake()
        return None

    def waiting(self) -> int:
        """How many letters wait."""
        return len(self._box)

    def leave(self) -> None:
        """Ask an idle actor to leave. Does nothing to a busy one."""
        if not self._box and not self._busy:
            self.leaving = True
            self._parked.wake()

    async def wait_loaded(self) -> None:
        """Wait until the state was read (or the actor is gone). Where it could not be read: Unavailable if that is the
        store's word, else Crashed."""
        await self._loaded.wait()
        if self._unread is not None:
            raise self._unread

    async def run(self) -> None:
        """Load, then serve the mailbox until told to leave. Its children live in `nursery` and end with it.

        Cancelling ends the loop between two letters or in a letter's reads, never inside a commit.
        """
        fate: Gone | Crashed | Refusal = Crashed("its state could not be read")
        self._unread = Crashed("its state could not be read")
        try:
            async with trio.open_nursery() as self.nursery:
                try:
                    self.state = await self.load()
                except (
                    Unavailable
                ) as error:  # the store has named it; who asks is told, and the next one tries again
                    fate, self._unread = self._refusal(error), error
                except trio.Cancelled:  # here, since the nursery hands it on in a group
                    fate, self._unread = GONE, Unavailable("the broker is stopping")
                    raise
                else:
                    fate, self._unread = GONE, None
                    self._busy = False
                    self._loaded.set()
                    await self._serve()
                self.nursery.cancel_scope.cancel()
        finally:
            self.gone = True
            self._loaded.set()
            await self._land()
            self._turn_away(fate)

    async def commit(self, unit: Unit) -> Refusal | None:
        """Commit a unit, shielded, within a bound. None: durable and visible.

        unavailable: certainly not written, the actor goes on. in_doubt: the actor stops after this answer.
        A conflict means that the log moved under us (a late commit landed): Stop, and the letter is asked again.
        """
        # One scope for the shield and its bound: a second one would cost 10 µs an envelope.
        bound = trio.CancelScope(shield=True, deadline=trio.current_time() + self._commit_timeout_s)
        try:
            with bound:
                await self.store.commit(unit)
            if bound.cancelled_caught:
                raise InDoubt
        except (Unavailable, InDoubt) as error:
            return self._refusal(error)
        except Conflict as error:
            raise Stop from error
        return None

    async def _serve(self) -> None:
        while True:
            self._advance()
            if self._fault is not None:
                raise self._fault
            if self.gone:
                return
            if self._box and not self._busy:
                await self._handle()
            elif self.leaving and not self._busy:
                self.gone = True  # no checkpoint from here to the end of run()
                return
            else:
                await self._parked.park()

    async def _handle(self) -> None:
        """Have `handle` do the next letter."""
        letter = self._take()
        self._busy = True
        try:
            answer = await self.handle(letter.command)
        except Stop:
            self.gone = True
            self._box.appendleft(letter)
            return
        except Unavailable as error:  # it could not read what it had to know, and has committed nothing
            self.gone = True
            letter.answer(self._refusal(error))
            return
        except Exception as error:
            self._crash(letter, error)
            return
        except BaseException:
            self._box.appendleft(letter)
            raise
        self._busy = False
        self.used = trio.current_time()
        letter.answer(answer)

    def _advance(self) -> None:
        """Do letters while none has to wait. The first that must is left to the actor's task."""
        while self._box and not self._busy and not self.gone:
            letter = self._take()
            if not self._do(letter):
                self._box.appendleft(letter)
                if letter.then is not None:
                    self._asked += 1
                self._parked.wake()
                return

    def _do(self, letter: Letter) -> bool:
        """Do a letter as far as nothing has to wait: decide, and commit or answer. False: `handle` has to."""
        self._busy = True
        try:
            step = self.decide(letter.command)
        except Exception as error:
            self._crash(letter, error)
            return True
        if isinstance(step, Write):  # it stays busy until the store's word, or the end of its time
            self.leaving = False
            self.used = step.began
            flight = self._flight = _Commit(step.began + self._commit_timeout_s, self, letter, step)
            self._overdue.add(flight)
            self.store.submit(step.unit, flight.land)
            return True
        self._busy = False
        if step is NOT_NOW:
            return False
        self.leaving = False
        self.used = trio.current_time()
        letter.answer(step)
        return True

    def _conclude(self, letter: Letter, write: Write, error: BaseException | None) -> None:
        """A commit has come to its end: fold and answer; then the next letters."""
        self._busy = False
        if isinstance(error, Conflict):
            self.gone = True
            self._box.appendleft(letter)
        else:
            try:
                answer = write.settle(None if error is None else self._refusal(error))
            except Exception as fault:
                self._crash(letter, fault)
                return
            letter.answer(answer)
        if self._box:
            self._advance()
        if self.gone:
            self._parked.wake()

    def _refusal(self, error: BaseException) -> Refusal:
        """What a failed commit is to who asked. Raises what is no answer of a store's."""
        if isinstance(error, Unavailable):
            return refuse(
                "unavailable",
                "the store gives or takes nothing now; nothing was written, send it again later",
            )
        if isinstance(error, InDoubt):
            self.gone = True
            return refuse(
                "in_doubt", "it is not known yet whether this was written; repeat the identical request"
            )
        raise error

    def _crash(self, letter: Letter, error: Exception) -> None:
        """An unexpected fault: who asked hears of it, and the task ends by it."""
        self.gone = True
        self._fault = error
        letter.answer(Crashed(repr(error)))
        self._parked.wake()

    def _take(self) -> Letter:
        letter = self._box.popleft()
        if letter.then is not None:
            self._asked -= 1
        self.leaving = False
        return letter

    async def _land(self) -> None:
        """On the way out: wait for a commit that is under way, within its bound."""
        flight = self._flight
        if flight is None or flight.over:
            return
        with trio.CancelScope(shield=True, deadline=flight.deadline):
            while not flight.over:
                await self._parked.park()
        if not flight.over:
            flight.expire()

    def _turn_away(self, answer: Gone | Crashed | Refusal) -> None:
        while self._box:
            self._box.popleft().answer(answer)
        self._asked = 0

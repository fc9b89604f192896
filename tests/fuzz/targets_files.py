"""What is read from the disk: rows of a store, the configuration, and the artifacts of sessions."""

import tempfile
from contextlib import suppress
from pathlib import Path

import msgspec
import trio

from broker.actors.calls import ConvRow, Row, log_name, read_state
from broker.config import Arena
from broker.core.arena import artifact_of
from broker.core.arenaverify import Report, verify
from broker.core.games import hilo, rfq
from broker.core.games.table import load as load_games
from broker.core.machine import Now
from broker.store.memory import MemoryStore
from broker.store.port import Append, Put, Unavailable, Unit
from broker.wire.canonical import canonicalize
from broker.wire.refusals import Refusal
from gateways.configure import ConfigError, Configuration, load
from tests.fuzz.harness import Meter, Target, in_loop
from tests.fuzz.inputs import TOKENS
from tests.fuzz.targets_wire import expect
from tests.support.games import played
from tests.support.vectors import VALID, envelope_rows

CONV = "a1b2c3d4e5f6a7b8"
GAMES = load_games(Arena().games)
NOW = Now(1_782_345_678_000, 100.0)


async def fold(data: bytes) -> None:
    """The first line is the document, each other one a row of its log."""
    document, *rows = data.split(b"\n")
    store = MemoryStore()
    await store.commit(Unit(puts=(Put("conv", CONV, 0, document),)))
    for n, row in enumerate(rows[:40]):
        await store.commit(Unit(append=Append(log_name(CONV), n, row, 1_782_345_678_000 + n)))
    stored = await store.get("conv", CONV)
    assert stored is not None
    try:
        state = await read_state(store, stored, NOW, NOW, 30)
    except Unavailable as error:
        expect(CONV[:8] in str(error), "it does not say what is damaged")
    else:
        expect(state is None or state.n >= 0, "no state")
    await trio.lowlevel.checkpoint()


def rows(data: bytes, meter: Meter) -> None:
    in_loop(fold, meter, data)


def stored(name: str) -> bytes:
    """A transcript of the vectors as a store has it."""
    found = envelope_rows(name)
    first = found[0]["envelope"]
    row = ConvRow(CONV, first["from"], first["to"], "ALFA", "BRAV", "0f" * 32, "open", 1_782_345_678_000)
    lines = [
        msgspec.json.encode(
            Row(each["chain"], CONV, msgspec.Raw(each["canonical"].encode()), each["n"], each["sig"])
        )
        for each in found
    ]
    return b"\n".join([msgspec.json.encode(row), *lines])


def config(data: bytes, meter: Meter) -> None:
    """The operator's own file: no bound on its time, but whatever it holds is one line for a person."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "turret.toml")
        path.write_bytes(data)
        try:
            found = load(path, {})
        except ConfigError as error:
            expect(len(str(error).splitlines()) <= 1, f"more than a line: {error}")
        else:
            expect(isinstance(found, Configuration), "no configuration")


def environment(data: bytes, meter: Meter) -> None:
    """Lines NAME=value, as they stand in the environment."""
    pairs = (line.partition("=") for line in data.decode("utf-8", "surrogateescape").split("\n"))
    named = {f"TURRET_{name}": value for name, _, value in pairs}
    with suppress(ConfigError):
        expect(isinstance(load(None, named), Configuration), "no configuration")


def session(data: bytes, meter: Meter) -> None:
    """As it stands, and in the canonical form of what it says: so that what is in it is read too."""
    text = canonicalize(data)
    for each in {data, data if isinstance(text, Refusal) else text}:
        found: Report = meter.call(verify, each, GAMES)
        expect(found.ok == (found.fault is None), "a verdict without a reason")
        expect(not found.ok or found.over is not None, "it holds, and is not over")


CONFIGS = [
    b'transcripts = "parties"\n[serve]\nbind = "127.0.0.1:0"\nbehind_proxy = ["10.0.0.0/8"]\n[limits]\nrings = 70\n',
    b'[serve]\npublic_url = "https://a.example"\nallowed_origins = ["https://b.example:8443"]\ntls_cert = "a"\n'
    b'tls_key = "b"\n[desks]\nopen = "anyone"\nreserved = ["HELP"]\n[streams]\nping_s = 20.0\ndead_s = 30\n',
    b'[serve]\nissuer = "https://i.example/x"\nissuer_client = "a"\nissuer_secret_file = "/x"\n[calls]\nring_s = 1e1\n',
]
CONFIG_TOKENS = [
    b"[serve]\n", b"[[limits]]\n", b"a.b.c = 1\n", b'"""', b"'''", b"= nan\n", b"= inf\n", b"1979-05-27T07:32:00Z",
    b"{a=", b"[", b"]", b"=", b"\\u", b"\xff", b"\x00", b"0x", b"1_0", b"http://[::1", b"http://a:99999", b"%", b"@",
    b"\xd9\xa1", b"9" * 5000, b"127.0.0.1:\xc2\xb2", b"limits = 1\n", b"serve = []\n", b"true", b"-1", b"1e400",
]  # fmt: skip
VARIABLES = [
    b"BIND=127.0.0.1:0\nLIMITS_RINGS=70\nBEHIND_PROXY=10.0.0.1,10.0.0.2",
    b"TRANSCRIPTS=open\nPUBLIC_URL=https://a",
]

SESSIONS = [
    artifact_of(played(game, actions=4, reveal=reveal))
    for game in (hilo, rfq)
    for reveal in ("on_end", "never")
]
SESSION_TOKENS = [
    b'"type":"stop"', b'"facts":{}', b'"entries":[]', b'"card":"ZZ"', b'"reference":-1', b'"size":0', b'"decks":8',
    b'"balance":9007199254740991', b'"games":-1', b'"ended":{"over":"x"}', b'"bid":null', b'"client":"buys"', b"true",
]  # fmt: skip

TARGETS = [
    Target("session", session, SESSIONS, [*TOKENS, *SESSION_TOKENS], examples=200),
    Target(
        "rows",
        rows,
        [stored(name) for name in VALID],
        [*TOKENS, b"\n", b'"n":1', b'"chain":"zz"'],
        examples=200,
    ),
    Target("config", config, CONFIGS, CONFIG_TOKENS, examples=200),
    Target(
        "environment",
        environment,
        VARIABLES,
        [*CONFIG_TOKENS[13:], b"\n", b"LIMITS_WINDOW_MS=", b"STREAMS_PING_S="],
    ),
]

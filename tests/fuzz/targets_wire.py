"""Readers of the wire: each against its own slow way, and JSON against Python's reader and RFC 8785's own author."""

import json
from collections.abc import Sequence
from typing import Any

import rfc8785

from broker.tools.registry import collect
from broker.wire import canonical, envelope, events, statement
from broker.wire.chain import verify_transcript
from broker.wire.refusals import Refusal
from gateways import jsonrpc
from gateways.mcp.listing import Pages
from gateways.mcp.sealed import Seal
from gateways.quick import QuickReader, Started
from tests.fuzz.harness import Meter, Target, Wrong
from tests.fuzz.inputs import ENVELOPES, JSON_SEEDS, REFUSED_TEXTS, TOKENS, compact, json_texts
from tests.support.vectors import KEYS, export_lines

TOOLS = collect()
READER = QuickReader(TOOLS)
KEY = next(iter(KEYS.values()))


def expect(holds: bool, words: str) -> None:
    if not holds:
        raise Wrong(words)


def _constant(text: str) -> Any:
    raise ValueError(text)


def is_json(data: bytes) -> bool | None:
    """What Python's reader says of the grammar; None where it is too deep for it."""
    try:
        json.loads(data.decode(), parse_int=len, parse_float=len, parse_constant=_constant)
    except ValueError:
        return False
    except RecursionError:
        return None
    return True


def canonical_form(data: bytes, meter: Meter) -> None:
    value = meter.call(canonical.read, data)
    text = meter.call(canonical.canonicalize, data)
    fast = meter.call(canonical.quick, data)
    members = meter.call(canonical.members, data)
    if isinstance(value, Refusal) or isinstance(text, Refusal):
        expect(value == text, "read and canonicalize disagree")
        expect(fast is None, "the fast path took what is refused")
        grammar = is_json(data)
        expect(grammar is None or grammar == ("path" in value.detail), f"JSON or not: {value}")
        return
    expect(is_json(data) is True, "taken and no JSON")
    expect(canonical.canonicalize(text) == text, "not the canonical form of itself")
    expect(canonical.encode(value) == text, "the value is another one than the text's")
    expect(fast is None or fast[1] == text, "fast and slow canonical texts differ")
    expect(rfc8785.dumps(value) == text, "not RFC 8785")
    if isinstance(value, dict):
        expect(not isinstance(members, Refusal) and members.keys() == value.keys(), "members differ")
        for name, raw in members.items():
            expect(
                canonical.canonicalize(bytes(raw)) == canonical.encode(value[name]),
                f"member {name!r} differs",
            )
    else:
        expect(isinstance(members, Refusal), "members of what is no object")


def envelope_reader(data: bytes, meter: Meter) -> None:
    found = meter.call(envelope.read_envelope, data)
    parsed = canonical.parse(data)
    slow = parsed if isinstance(parsed, Refusal) else envelope._shape(parsed[0]) or envelope._build(*parsed)
    expect(found == slow, f"fast and slow readers disagree: {found} {slow}")
    if not isinstance(found, Refusal):
        expect(canonical.canonicalize(data) == found.canonical, "not its canonical text")
        expect(
            meter.call(envelope.read_envelope, found.canonical) == found, "its canonical text reads otherwise"
        )
        envelope.call_codes(found)
        envelope.answers_late(found.type, found.valid_until_ms, 2**60)


def statement_reader(data: bytes, meter: Meter) -> None:
    found = meter.call(statement.read_statement, data)
    if isinstance(found, Refusal):
        expect(found.code in ("bad_request", "bad_statement"), found.code)
        return
    expect(
        statement.read_statement(found.canonical, do=found.do) == found, "its canonical text reads otherwise"
    )
    statement.check_wire(found, [found.wire])
    statement.check_time(found, 0)


def rpc_reader(data: bytes, meter: Meter) -> None:
    found = meter.call(jsonrpc.read, data)
    quickly, jsonrpc._quick = jsonrpc._quick, lambda data: None
    try:
        slow = meter.call(jsonrpc.read, data)
    finally:
        jsonrpc._quick = quickly
    expect(found == slow, f"quick and slow readers disagree: {found} {slow}")
    if isinstance(found, jsonrpc.Malformed):
        expect(jsonrpc.read(found.reply()) is not None, "its answer can't be read")
        json.loads(found.reply())
    elif isinstance(found, jsonrpc.Request):
        for tool in TOOLS.values():
            meter.call(tool.decode, found.params)


def quick_reader(data: bytes, meter: Meter) -> None:
    found = meter.call(READER.read, data)
    if found is None:
        return
    expect(isinstance(found, Started), "no request")
    strict = jsonrpc.read(data)
    if not isinstance(strict, jsonrpc.Request):
        raise Wrong(f"taken and refused by the strict way: {strict}")
    expect((strict.id, strict.method) == (found.id, found.tool.name), "another request")
    members = canonical.members(strict.params)
    expect(not isinstance(members, Refusal) and members.keys() == set(found.tool.params), "other members")
    arguments = found.tool.decode(strict.params)
    if not isinstance(arguments, Refusal):  # patterns and bounds are the starter's to look at
        given = {name: getattr(found.arguments, name) for name in arguments}
        shown = {
            name: value if isinstance(value, str | int) else bytes(value) for name, value in given.items()
        }
        expect(shown == arguments, "other arguments")


def cursors(data: bytes, meter: Meter) -> None:
    text = data.decode("latin-1")
    found = meter.call(events.read_cursor, text)
    if found is not None:
        expect(events.read_cursor(found.text()) == found, "another cursor")
    for oldest, newest in ((1, 0), (5, 9), (10**17, 10**18)):
        told, position = meter.call(events.resume_at, "pk:a", text, "e0e0e0e0e0e0e0e0", oldest, newest)
        expect(oldest - 1 <= position <= newest, f"goes on at {position}")
        expect((told.reason is None) == told.recovered, "recovered for a reason")
    meter.call(PAGES.page, text)
    expect(meter.call(SEAL.open, text, "owner", "request") is None or data == SEALED, "not ours, and opened")


PAGES = Pages("tools", list(range(500)), 10)
SEAL = Seal(b"k" * 32, now=lambda: 0.0)
SEALED = SEAL.close("state", "owner", "request").encode()
NEXT = str(PAGES.page(None)["nextCursor"]).encode()  # type: ignore[index]  # there is a next page


def transcripts(data: bytes, meter: Meter) -> None:
    lines = data.split(b"\n")
    verdict = meter.call(verify_transcript, lines) if len(lines) < 3 else verify_transcript(lines)
    expect(verdict.broken is not None or verdict.rows > 0, "holds without a row")


def request(method: str, params: Any, id: Any = 1) -> bytes:
    return compact({"jsonrpc": "2.0", "id": id, "method": method, "params": params})


def retyped(texts: Sequence[bytes]) -> list[bytes]:
    """The same objects, each with one member of another type."""
    found = []
    for text in texts:
        value = json.loads(text)
        found += [
            compact({**value, name: other}) for name in value for other in (None, 1.5, [], {}, True, "")
        ]
    return found


def statements() -> list[bytes]:
    wire, nonce = "0f" * 32, "0a" * 16
    made = [
        statement.build_statement(do, KEY, wire, 1_782_345_678, nonce, **members)[0]
        for do, members in (
            ("open_desk", {"code": "ALFA", "recovery_pk": KEY.pk}),
            ("move_desk", {"code": "ALFA", "new_pk": KEY.pk}),
            ("authenticate", {}),
            ("follow", {"code": "ALFA", "until": 1_782_345_999}),
            ("screen_desk", {"code": "ALFA", "allow": [KEY.pk], "deny": [], "mode": "known"}),
            ("register_agent", {"name": "a bot"}),
        )
    ]
    return [*made, *(json.dumps(json.loads(each), indent=1).encode() for each in made)]


SEND = {
    "conv": "a1b2c3d4e5f6a7b8",
    "n": 7,
    "from_pk": "1" * 64,
    "sig": "2" * 128,
    "envelope": {"body": {"px": "1"}},
}
REQUESTS = [
    request("send_env", SEND),
    request("send_env", {**SEND, "envelope": json.loads(ENVELOPES[2])}, "an id"),
    request("send_call", {"to_code": "BRAV", **{k: SEND[k] for k in ("from_pk", "sig", "envelope")}}),
    request("follow", {"code": "ALFA", "after": "0"}),
    request("ping", {}),
    request("desk_rings", {"wait_ms": 0}),
    b'{"jsonrpc":"2.0","method":"notifications/cancelled"}',
    b'{"jsonrpc":"2.0","id":5,"result":{}}',
    b'{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}',
    b'{"jsonrpc":"2.0","id":1,"id":2,"method":"x"}',
]
RPC_TOKENS = [
    *TOKENS,
    b'"jsonrpc":"2.0",',
    b'"id":1',
    b'"id":',
    b'"method":"send_env"',
    b'"params":{}',
    b'"n":1.0',
]
EXPORTS = [b"\n".join(export_lines(name)) for name in ("deal", "unicode_and_numbers", "hung_up_out_of_turn")]
CURSORS = [
    b"f00df00d.e0e0e0e0e0e0e0e0.7",
    events.Cursor(events.stream_tag("pk:a"), "e" * 16, 5).text().encode(),
    b"0",
]

TARGETS = [
    Target("canonical", canonical_form, JSON_SEEDS + ENVELOPES, TOKENS, json_texts()),
    Target(
        "envelope",
        envelope_reader,
        ENVELOPES + REFUSED_TEXTS + retyped(ENVELOPES[:1]),
        [*TOKENS, b'"conv":"', b'{"body":{'],
        json_texts(),
    ),
    Target("statement", statement_reader, statements() + retyped(statements()[:6]), TOKENS),
    Target("jsonrpc", rpc_reader, REQUESTS, RPC_TOKENS),
    Target("quick", quick_reader, REQUESTS, RPC_TOKENS),
    Target(
        "cursors",
        cursors,
        [*CURSORS, SEALED, NEXT],
        [b".", b"0", b"-", b"\xb2", b"=", b"9" * 30, b"9" * 5_000],
    ),
    Target(
        "transcripts",
        transcripts,
        EXPORTS,
        [*TOKENS, b'"n":0,', b'"receipt":{}', b'"accepted_at":1'],
        examples=150,
    ),
]

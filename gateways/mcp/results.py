"""A tool's result in MCP's form: the object itself, a sentence for people, and the object as text.

1. structuredContent is the protocol's object, encoded once; content[1].text is the same text.
2. Our sentences hold nothing that another party wrote: only codes, ids, numbers and states of a strict form.
3. Where others wrote, `"untrusted": true` stands beside it.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from gateways.mcp.listing import OTHERS_WROTE

_PLAIN: Final = re.compile(r"[A-Za-z0-9_.:-]{1,160}")
_encode = msgspec.json.Encoder().encode


def tool_result(name: str, value: object) -> dict[str, Any]:
    """The result of tools/call for what the broker's tool `name` returned. Raises for what is no object."""
    text = _encode(value)
    members: dict[str, Any] = msgspec.json.decode(text)
    text = mark(text, members)
    return {
        "content": [
            {"type": "text", "text": sentence(name, members)},
            {"type": "text", "text": text.decode()},
        ],
        "structuredContent": msgspec.Raw(text),
        "isError": False,
    }


def mark(text: bytes, members: Mapping[str, Any]) -> bytes:
    """The object's JSON text, with `untrusted` in front when it carries what other parties wrote."""
    return untrusted(text) if OTHERS_WROTE & members.keys() else text


def untrusted(text: bytes) -> bytes:
    """An object's JSON text with `"untrusted": true` in front."""
    return b'{"untrusted":true' + (b"}" if text[1:].strip() == b"}" else b"," + text[1:])


def sentence(name: str, members: Mapping[str, Any]) -> str:
    """A short rendering for people and small models."""
    words = _WORDS.get(name)
    return words(members) if words is not None else f"{name}: done; the result is in structuredContent."


def plain(value: Any) -> str:
    """A value that may stand in a sentence: a number, or a short text without spaces or signs; else `?`."""
    if isinstance(value, bool | int):
        return str(value).lower()
    return value if isinstance(value, str) and _PLAIN.fullmatch(value) else "?"


def _sent(members: Mapping[str, Any]) -> str:
    again = " (it was accepted before)" if members.get("replayed") else ""
    return (
        f"Envelope {plain(members.get('n'))} of conversation {plain(members.get('conv'))} is recorded{again}."
    )


def _called(members: Mapping[str, Any]) -> str:
    return f"{_sent(members)} The desk rings; its PICKUP or END comes on your desk's stream."


def _read(members: Mapping[str, Any]) -> str:
    rows = members.get("rows") or []
    more = f" More follows: read again with after={plain(members['next'])}." if "next" in members else ""
    state = plain(members.get("state"))
    return f"Conversation {plain(members.get('conv'))} is {state}; {len(rows)} envelope(s) here.{more}"


def _rings(members: Mapping[str, Any]) -> str:
    rings = members.get("rings") or []
    if not rings:
        return f"Nobody is calling. Ask again with after={plain(members.get('cursor'))}."
    calls = ", ".join(f"{plain(ring.get('conv'))} from {plain(_code_from(ring))}" for ring in rings[:10])
    return f"{len(rings)} call(s): {calls}. Answer each with PICKUP or END, n = 1."


def _code_from(ring: Mapping[str, Any]) -> Any:
    envelope = ring.get("envelope")
    body = envelope.get("body") if isinstance(envelope, dict) else None
    return body.get("code_from") if isinstance(body, dict) else None


def _events(members: Mapping[str, Any]) -> str:
    return f"{len(members.get('events') or [])} event(s). Go on with after={plain(members.get('cursor'))}."


def _resolved(members: Mapping[str, Any]) -> str:
    there = "online" if members.get("online") else "not online"
    return f"{plain(members.get('code'))} is the key {plain(members.get('pk'))}, {there} now."


def _online(members: Mapping[str, Any]) -> str:
    online = sorted(plain(code) for code, there in (members.get("desks") or {}).items() if there)
    return f"Online: {', '.join(online[:50])}." if online else "None of these desks is online."


def _listed(members: Mapping[str, Any]) -> str:
    more = " More follows." if "next" in members else ""
    return f"{len(members.get('convs') or [])} conversation(s).{more}"


def _desk(members: Mapping[str, Any]) -> str:
    return f"Desk {plain(members.get('code'))} stands for the key {plain(members.get('pk'))}."


def _receipt(members: Mapping[str, Any]) -> str:
    return "The wire's signed receipt is in structuredContent."


def _canonical(members: Mapping[str, Any]) -> str:
    codes = ", ".join(plain(each.get("code")) for each in members.get("refusals") or [])
    if codes:
        return f"The wire would refuse this: {codes}. Nothing was written."
    return (
        "The wire finds no fault. Sign exactly the canonical text in structuredContent. Nothing was written."
    )


def _info(members: Mapping[str, Any]) -> str:
    transcripts = plain(members.get("transcripts"))
    return f"The wire's key is {plain(members.get('wire'))}; transcripts are {transcripts}."


_WORDS: Final[dict[str, Callable[[Mapping[str, Any]], str]]] = {
    "send_call": _called,
    "send_env": _sent,
    "read_conv": _read,
    "desk_rings": _rings,
    "wait_for_events": _events,
    "resolve_code": _resolved,
    "open_desk": _desk,
    "move_desk": _desk,
    "cancel_move": _desk,
    "close_desk": lambda members: f"Desk {plain(members.get('code'))} is closed.",
    "screen_desk": _desk,
    "presence": _online,
    "list_convs": _listed,
    "receipt": _receipt,
    "canonicalize": _canonical,
    "wire_info": _info,
}

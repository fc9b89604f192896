"""@tool: a tool is one function; its signature is its schema, its docstring its description.

1. A tool is registered where it is defined; a second of the same name raises at import.
2. Params arrive as JSON text, strictly read. A wrong one is a refusal that names its path; envelope, sig, conv
   and n are judged as the envelope (wire.md, Refusals).
3. The tool returns its result (a Struct or dict) or a Refusal. It never raises for bad input.
4. A tool that says a scope is for callers with a token: who may call is looked at before the params are. One that is
   `keyed` takes an idempotency_key.
5. What the public doors call has one space of names, the operators' tools have another, the verbs behind the sign-in
   pages a third, which no door lists.
"""

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Final, Literal, get_args, get_type_hints

import msgspec
from msgspec.structs import astuple

from broker.actors.once import PARAM
from broker.apart import LARGE, apart
from broker.tools import auditing
from broker.tools.access import allowed
from broker.tools.context import Context
from broker.tools.idempotency import KeyParam, KeyText, bind, digest_of, run_once
from broker.tools.schemas import flat, output_schema
from broker.tools.sealing import HIDDEN, hidden, opened
from broker.wire import canonical
from broker.wire.grammar import shown
from broker.wire.refusals import Refusal, refuse

Face = Literal["wire", "network", "arena", "trial", "operator", "signin"]
Space = Literal["public", "operator", "signin"]
Keyed = Literal["required"] | bool
_ENVELOPE_PARAMS: Final = frozenset({"envelope", "sig", "conv", "n"})
_TOOLS: Final[dict[tuple[Space, str], "Tool"]] = {}

ToolFunction = Callable[..., Awaitable[Any]]
Then = Callable[[Any], object]
Starter = Callable[[Context, Any, Then], bool]
"""A tool's way without waiting, if it has one: takes the context, the arguments (Quick's struct), and `then`.

True: `then` gets the outcome, once (an Again: the tool itself is to be run). False: nothing was done. Patterns and
bounds of the arguments are the starter's to check: what does not keep them is False.
"""


class Param(msgspec.Struct, frozen=True):
    """One parameter: its type as annotated, whether it must be there, the decoder for it, and what it is, in words."""

    name: str
    type: Any
    required: bool
    raw: bool
    decoder: Any
    words: str


class Tool(msgspec.Struct, frozen=True):
    """A tool as the doors see it."""

    name: str
    face: Face
    area: str
    title: str
    description: str
    function: ToolFunction
    params: dict[str, Param]
    input_schema: dict[str, Any]
    output_schema: dict[str, Any]
    read_only: bool
    destructive: bool
    idempotent: bool
    streams: bool
    """Whether it hands events to `progress` while it waits."""
    start: Starter | None = None
    """Its way without waiting, and `quick`, how its arguments are read for that; both or none."""
    quick: "Quick | None" = None
    scope: str | None = None
    """The scope that its caller's token must have; None: it needs no token."""
    also: str | None = None
    """Another scope that does as well."""
    agent: bool = True
    """Whether the token must act for an agent; where it has a scope at all."""
    keyed: Keyed = False
    """Whether it takes an idempotency_key, or must have one."""
    secrets: tuple[str, ...] = ()
    """Members of its answer that are remembered sealed, and opened for who asks (broker.tools.sealing)."""
    hides: bool = False
    """Whether a param is a secret, or holds one (sealing.HIDDEN): what binds a key to such a request tells nothing."""
    audited: bool = False
    """Whether the audit is told of what it changes (broker.tools.auditing)."""

    @property
    def annotations(self) -> dict[str, bool]:
        """MCP's tool annotations, true to the tool."""
        return {
            "readOnlyHint": self.read_only,
            "destructiveHint": self.destructive,
            "idempotentHint": self.idempotent,
            "openWorldHint": self.face != "operator",
        }

    def decode(self, text: bytes) -> dict[str, Any] | Refusal:
        """The arguments in a JSON object's text, each by its type; bad_request or bad_envelope names the path."""
        members = canonical.members(text)
        if isinstance(members, Refusal):
            return members
        params = self.params
        arguments: dict[str, Any] = {}
        for name, raw in members.items():
            param = params.get(name)
            if param is None:
                known, named = ", ".join(params) or "none", shown(name)
                return refuse("bad_request", f"{self.name} takes no {named!r}; it takes: {known}", path=named)
            value = _decode(param, raw)
            if isinstance(value, Refusal):
                return value
            arguments[name] = value
        if len(arguments) < len(params):
            for name, param in params.items():
                if param.required and name not in arguments:
                    return refuse("bad_request", f"{self.name} needs {name!r}", path=name)
        return arguments

    async def run(self, context: Context, text: bytes) -> Any:
        """Look who calls, decode and call. Returns the result or a Refusal; what cancelling does is the tool's to
        say."""
        if self.scope is not None:
            refused = await allowed(context, self.scope, self.agent, self.also)
            if refused is not None:
                return refused
        arguments = self.decode(text) if len(text) <= LARGE else await apart(self.decode, text)
        if isinstance(arguments, Refusal):
            return arguments
        answer = await self._once(context, arguments, text)
        return opened(context.services, answer, self.secrets) if self.secrets else answer

    async def _once(self, context: Context, arguments: dict[str, Any], text: bytes) -> Any:
        key = arguments.pop(PARAM, None) if self.keyed else None
        if key is None:
            return await self._do(context, arguments)
        digest = digest_of(text) if len(text) <= LARGE else await apart(digest_of, text)
        if isinstance(digest, Refusal):
            return digest
        if self.hides:
            digest = hidden(context.services, digest)
        once = bind(context, self.name, key, digest)
        return await run_once(context, once, lambda keyed: self._do(keyed, arguments))

    async def _do(self, context: Context, arguments: dict[str, Any]) -> Any:
        if not self.audited:
            return await self.function(context, **arguments)
        if not self.destructive and (refused := auditing.may_begin(context)) is not None:
            return refused
        context, note = auditing.begin(context, self.name, arguments)
        answer = await self.function(context, **arguments)
        await auditing.finish(context, note, answer)
        return answer


class Quick:
    """The arguments of a tool whose parameters are all required, and texts, integers or raw JSON, read in one pass.

    msgspec's reader passes over what the strict one refuses or judges: members that nobody asked for or that stand
    there twice, escapes, other forms of a number, white space. Each of these makes the text longer than the arguments
    alone would be, so a text of exactly their `size` has none of them. Patterns and bounds are not looked at.
    """

    def __init__(self, params: dict[str, Param]) -> None:
        fields = [(name, _kind(param)) for name, param in params.items()]
        self.type = msgspec.defstruct("Arguments", fields, gc=False)
        """The struct of the arguments, by which a frame can be read together with them."""
        self._shell = 1 + sum(len(name) + 4 for name in params) + 2 * sum(kind is str for _, kind in fields)

    @staticmethod
    def fits(params: dict[str, Param]) -> bool:
        """Whether a tool's parameters are of the kinds that this reads."""
        return bool(params) and all(
            param.required and _kind(param) in (msgspec.Raw, str, int) for param in params.values()
        )

    def size(self, arguments: Any) -> int:
        """How long the ASCII text of these arguments is if it has nothing that they don't."""
        size = self._shell
        for value in astuple(arguments):
            size += len(str(value)) if type(value) is int else len(value)
        return size


def _kind(param: Param) -> Any:
    """A parameter's type without its patterns and bounds."""
    return (get_args(param.type) or (param.type,))[0]


def tool(
    *,
    face: Face,
    title: str,
    read_only: bool = False,
    destructive: bool = False,
    idempotent: bool = True,
    streams: bool = False,
    start: Starter | None = None,
    scope: str | None = None,
    also: str | None = None,
    agent: bool = True,
    keyed: Keyed = False,
    secrets: tuple[str, ...] = (),
    audited: bool | None = None,
    name: str | None = None,
) -> Callable[[ToolFunction], ToolFunction]:
    """Register the decorated function under `name`, else its own; the other arguments are Tool's members. `audited`
    None: whether it is an operators' tool that changes something."""

    def register(function: ToolFunction) -> ToolFunction:
        called = name or function.__name__
        space = space_of(face)
        if (space, called) in _TOOLS:
            raise ValueError(f"two tools are called {called}")
        hints = get_type_hints(function, include_extras=True)
        result = hints.pop("return", Any)
        signature = inspect.signature(function).parameters
        names = [parameter for parameter in signature if parameter != "context"]
        params = {n: _param(n, hints[n], signature[n].default is inspect.Parameter.empty) for n in names}
        if keyed:
            must = keyed == "required"
            params[PARAM] = _param(PARAM, KeyText if must else KeyParam, required=must)
        _TOOLS[space, called] = Tool(
            name=called,
            face=face,
            area=function.__module__.rpartition(".")[2],
            title=title,
            description=inspect.getdoc(function) or "",
            function=function,
            params=params,
            input_schema=_input_schema(params),
            output_schema=output_schema(result),
            read_only=read_only,
            destructive=destructive,
            idempotent=idempotent,
            streams=streams,
            start=start,
            quick=Quick(params) if start is not None and Quick.fits(params) else None,
            scope=scope,
            also=also,
            agent=agent,
            keyed=keyed,
            secrets=secrets,
            hides=_hides(params),
            audited=face == "operator" and not read_only if audited is None else audited,
        )
        return function

    return register


def space_of(face: Face) -> Space:
    """The space of names that a face's tools have."""
    return face if face in ("operator", "signin") else "public"


def collect(space: Space = "public") -> dict[str, Tool]:
    """The tools of a space that are registered so far, by name, in order of name."""
    return {name: made for (its, name), made in sorted(_TOOLS.items()) if its == space}


def _param(name: str, hint: Any, required: bool) -> Param:
    raw = _is_raw(hint)
    words = str(flat(hint).get("description", ""))
    return Param(name, hint, required, raw, None if raw else msgspec.json.Decoder(hint), words)


def _hides(params: dict[str, Param]) -> bool:
    member = msgspec.json.encode(HIDDEN).strip(b"{}")
    return any(member in msgspec.json.encode(flat(param.type)) for param in params.values())


def _is_raw(hint: Any) -> bool:
    return hint is msgspec.Raw or any(_is_raw(part) for part in get_args(hint))


def _decode(param: Param, raw: msgspec.Raw) -> Any:
    if param.raw:
        text = bytes(raw)
        return None if text == b"null" and not param.required else text
    text = bytes(raw)
    try:
        return param.decoder.decode(text)
    except (msgspec.ValidationError, msgspec.DecodeError) as error:
        whole = _whole_number(param, text)
        if whole is not None:
            return whole
        code = "bad_envelope" if param.name in _ENVELOPE_PARAMS else "bad_request"
        return refuse(code, f"{param.name}: {_fault(param, str(error))}", path=param.name)
    except RecursionError:
        return refuse("bad_request", f"{param.name}: nested too deep", path=param.name)


def _fault(param: Param, error: str) -> str:
    """What is wrong with a value. A pattern tells people and models little, what the param is tells them all."""
    told, _, where = error.partition(" - at ")
    place = f" at {where}" if where else ""
    if "matching regex" in told:
        return f"not of the right form{place}" + (f"; it is {param.words}" if param.words else "")
    return error + (f"; it is {_choices(param)}" if "enum value" in told else "")


def _choices(param: Param) -> str:
    """The values of which a param, or each of its parts, is one."""
    schema = flat(param.type)
    values = schema.get("enum") or schema.get("items", {}).get("enum")
    return f"one of: {', '.join(map(str, values))}" if values else param.words


def _whole_number(param: Param, text: bytes) -> int | None:
    """An integer in any JSON form with that value (2.0, 2e0), as wire.md takes n."""
    try:
        number = msgspec.json.decode(text, type=float, strict=True)
        if number.is_integer() and abs(number) < 2**53:
            value = msgspec.json.encode(int(number))
            return int(param.decoder.decode(value))
    except (msgspec.ValidationError, msgspec.DecodeError, TypeError, ValueError):
        return None
    return None


def _input_schema(params: dict[str, Param]) -> dict[str, Any]:
    properties = {name: flat(param.type) for name, param in params.items()}
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name, param in params.items() if param.required],
        "additionalProperties": False,
    }

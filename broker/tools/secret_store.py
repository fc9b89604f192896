"""Secrets that agents and operators keep here for what acts in their name, as `${NAME}` (docs/reference/trial.md,
Secrets).

A value comes in and is never shown: there is no tool that gives it, and no answer, note or digest that holds it.
"""

from typing import Annotated

import msgspec
from msgspec import Meta

from broker.actors.safe import KIND, OPERATORS, UnsetSecret
from broker.core.safe import MAX_VALUE, NAME, VALUE
from broker.tools import agents
from broker.tools.access import me
from broker.tools.context import Context
from broker.tools.registry import tool
from broker.tools.sealing import HIDDEN
from broker.wire.refusals import Refusal, refuse

NameParam = Annotated[
    str,
    Meta(
        pattern=rf"^{NAME}$(?!\n)",
        description="1 to 64 capital letters, digits and low lines, a letter first, such as HOOK_TOKEN",
    ),
]
ValueParam = Annotated[
    str,
    Meta(
        pattern=rf"^{VALUE}$(?!\n)",
        description=f"1 to {MAX_VALUE:,} characters of printable ASCII, without spaces around them",
        extra_json_schema=HIDDEN,
    ),
]


class SecretSet(msgspec.Struct, frozen=True):
    """It is kept. Times are Unix milliseconds."""

    name: str
    created_at: int
    updated_at: int


class SecretUnset(msgspec.Struct, frozen=True):
    """There is none of this name any more."""

    name: str
    unset: bool


class Listed(msgspec.Struct, frozen=True):
    """A secret's name. `readable` false: the key that it was sealed with is not here; set it again."""

    name: str
    created_at: int
    """Unix milliseconds."""
    updated_at: int
    readable: bool


class SecretNames(msgspec.Struct, frozen=True):
    """All of them, in order of name."""

    secrets: list[Listed]


@tool(
    face="trial",
    title="Keep a secret",
    name="kestrel.secrets.set",
    scope="trial",
    keyed=True,
    audited=True,
)
async def set_secret(context: Context, name: NameParam, value: ValueParam) -> SecretSet | Refusal:
    """Keep a value, new or in place of the one of its name, that your webhook's headers may name as ${NAME}.

    Nobody is shown it again, you neither. It is your owner's, and all agents of your owner may use it; an agent without
    an owner has its own. 64 at most (quota_exceeded); an agent that nobody has claimed has none.
    """
    holder = await _holder(context)
    if isinstance(holder, Refusal):
        return holder
    return await _set(context, holder, name, value)


@tool(
    face="trial",
    title="Forget a secret",
    name="kestrel.secrets.unset",
    scope="trial",
    keyed=True,
    destructive=True,
    audited=True,
)
async def unset_secret(context: Context, name: NameParam) -> SecretUnset | Refusal:
    """Forget a secret. What names it is not sent until it is set again (secret_unset)."""
    holder = await _holder(context)
    if isinstance(holder, Refusal):
        return holder
    return await _unset(context, holder, name)


@tool(face="trial", title="Names of secrets", name="kestrel.secrets.list", scope="trial", read_only=True)
async def list_secrets(context: Context) -> SecretNames | Refusal:
    """The names of your secrets, since when each is there, and whether it can be used. No value is shown."""
    holder = await _holder(context)
    if isinstance(holder, Refusal):
        return holder
    return await _listed(context, holder)


@tool(face="operator", title="Keep a secret of the operators", name="set_secret", keyed=True)
async def set_operators_secret(context: Context, name: NameParam, value: ValueParam) -> SecretSet | Refusal:
    """Keep a value, new or in place of the one of its name, that the headers of fetch_tape may name as ${NAME}.

    Nobody is shown it again. It is the operators': no agent uses it, and they use no agent's. 64 at most
    (quota_exceeded).
    """
    return await _set(context, OPERATORS, name, value)


@tool(
    face="operator",
    title="Forget a secret of the operators",
    name="unset_secret",
    keyed=True,
    destructive=True,
)
async def unset_operators_secret(context: Context, name: NameParam) -> SecretUnset | Refusal:
    """Forget a secret of the operators. What names it is not fetched until it is set again (secret_unset)."""
    return await _unset(context, OPERATORS, name)


@tool(face="operator", title="Names of the operators' secrets", name="list_secrets", read_only=True)
async def list_operators_secrets(context: Context) -> SecretNames:
    """The names of the operators' secrets, since when each is there, and whether it can be used. No value is shown, and
    nothing of agents'."""
    return await _listed(context, OPERATORS)


async def _set(context: Context, holder: str, name: str, value: str) -> SecretSet | Refusal:
    services = context.services
    command = await services.safe.sealing(holder, name, value, context.once)
    if isinstance(command, Refusal):
        return command
    answer: SecretSet | Refusal = await services.house.ask(KIND, holder, command)
    return answer


async def _unset(context: Context, holder: str, name: str) -> SecretUnset | Refusal:
    command = UnsetSecret(name, context.once)
    answer: SecretUnset | Refusal = await context.services.house.ask(KIND, holder, command)
    return answer


async def _listed(context: Context, holder: str) -> SecretNames:
    safe = context.services.safe
    return SecretNames(
        [
            Listed(each.name, each.created_at, each.updated_at, safe.is_readable(holder, each))
            for each in await safe.kept(holder)
        ]
    )


async def _holder(context: Context) -> str | Refusal:
    """Whose the caller's secrets are: its owner's, or its own where it has none."""
    agent = await agents.find(context.services, me(context))
    if agent is None:
        return refuse("NOT_FOUND", "there is no such agent")
    if agent.tier == "unclaimed":
        said = "an agent that nobody has claimed keeps no secret"
        return refuse("quota_exceeded", said, reason="secrets", limit=0)
    return agent.owner_id or agent.agent_id

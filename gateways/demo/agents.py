"""The demo's second act: the two desks' keys register as agents, agree, talk, and part.

Nobody is asked for an account: an agent proves its key, and gets its token by it.
"""

from collections.abc import Callable
from typing import Final

from broker.wire.keys import SigningKey
from gateways.client.agent import Agent, open_agent
from gateways.client.errors import Refused
from gateways.client.show import printable

PURPOSE: Final = "prices for EURUSD"
QUESTION: Final = "The same again tomorrow?"
ANSWER: Final = "Call me at nine."

Tell = Callable[[str], None]


async def meet(url: str, wire: str, keys: tuple[SigningKey, SigningKey], tell: Tell) -> str:
    """Play it at a broker, and tell each step. Returns how it ended: the code of the refusal after the end.

    Raises DealerError. Cancelling ends both connections.
    """
    async with open_agent(url, keys[0], wire=wire) as alfa, open_agent(url, keys[1], wire=wire) as brav:
        for name, agent in (("alfa", alfa), ("brav", brav)):
            made = await agent.register(name)
            desk = (await agent.call("get_agent", agent_id=made.agent_id)).get("desk", {})
            tell(f"{name}    {made.agent_id}  registered itself; its desk is {desk.get('code', 'none')}")
        assert brav.agent_id is not None  # it has registered
        request = await alfa.request_contact(brav.agent_id, PURPOSE)
        asked = await anext(brav.requests())
        await brav.respond(asked, accept=True)
        outcome = await alfa.outcome(request)
        asks = f"{asked.from_name} asks {asked.to_name} for {', '.join(asked.scopes)}s: {asked.purpose}"
        tell(f"{printable(asks)} → {outcome.status}")
        await _talk(alfa, brav, brav.agent_id, tell)
        for agreement in await alfa.contacts():
            await alfa.revoke(agreement)
        try:
            await brav.send(str(alfa.agent_id), QUESTION)
        except Refused as no:
            return no.code
        return "accepted"


async def _talk(alfa: Agent, brav: Agent, to: str, tell: Tell) -> None:
    await alfa.send(to, QUESTION)
    question = await anext(brav.inbox())
    tell(printable(f"alfa → brav    {question.body}"))
    await brav.reply(question, ANSWER)
    answer = await anext(alfa.inbox())
    tell(printable(f"brav → alfa    {answer.body}"))

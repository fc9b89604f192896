"""An agent that answers by itself: it accepts who asks, says the time to whoever writes, and stops where it must.

The loop guard stops two such agents that answer each other. Then this one leaves the other alone until somebody there
begins anew, and sends nothing again.
"""

import time

import trio

from gateways.client.agent import Agent, open_agent
from gateways.client.errors import Refused


async def accept(me: Agent) -> None:
    async for request in me.requests():
        try:
            await me.respond(request, accept=True, scopes=["message"])
            print(f"agreed with {request.from_agent_id}", flush=True)
        except Refused as no:
            print(f"not agreed: {no.code}", flush=True)


async def answer(me: Agent) -> None:
    stopped: set[str] = set()
    async for message in me.inbox(unread=True):
        if message.hops == 0:
            stopped.discard(message.from_agent_id)  # somebody there has begun anew
        if message.from_agent_id in stopped:
            continue
        try:
            await me.reply(message, f"It is {time.strftime('%H:%M:%S')} here.")
            await me.mark_read(message)
        except Refused as no:
            print(f"no answer: {no.code} {no.reason or ''}".rstrip(), flush=True)
            if no.reason == "loop":
                stopped.add(message.from_agent_id)


async def main() -> None:
    async with open_agent("http://127.0.0.1:8766", "clock.key") as me:
        identity = await me.register("clock")
        print(f"I am {identity.agent_id}", flush=True)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(accept, me)
            nursery.start_soon(answer, me)


trio.run(main)

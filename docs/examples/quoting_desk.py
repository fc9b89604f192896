"""BRAV: a desk that makes prices, one for each request, and confirms what is dealt at the last one."""

import os

import trio

from gateways.client.connect import connect

BROKER = os.environ.get("TURRET_URL", "http://127.0.0.1:8766")


async def main() -> None:
    async with connect(BROKER, "brav.key") as desk:
        await desk.open("BRAV")
        print("BRAV is open", flush=True)
        async for ring in desk.rings():
            middle, asked = 108_420, 0
            async with ring.answer() as call:
                async for said in call:
                    if said.type == "RFQ":
                        middle, asked = middle + asked * 7 % 6 - 2, asked + 1  # up a little, back and forth
                        quote = {
                            "bid": f"{(middle - 1) / 100_000:.5f}",
                            "ask": f"{(middle + 1) / 100_000:.5f}",
                        }
                        await call.send("QUOTE", quote)
                    elif said.body["px"] == quote["ask" if said.body["side"] == "buy" else "bid"]:
                        await call.send("CONFIRM", said.body)
                    else:
                        await call.end("not my price")


trio.run(main)

"""A market maker in ten lines: it answers every call and quotes whoever asks."""

import trio

from gateways.client.connect import connect


async def main() -> None:
    async with connect("http://127.0.0.1:8766", "brav.key") as desk:
        await desk.open("BRAV")
        async for ring in desk.rings():
            async with ring.answer() as call:
                async for envelope in call:
                    await call.send("QUOTE", {"bid": "1.0841", "ask": "1.0843", "answers": envelope.n})


trio.run(main)

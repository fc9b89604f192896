"""The other side: dial BRAV, ask for a price, deal at it, and hang up."""

import trio

from gateways.client.connect import connect
from gateways.client.errors import CallEnded, Refused


async def main() -> None:
    async with connect("http://127.0.0.1:8766", "alfa.key") as desk:
        await desk.open("ALFA")
        try:
            async with desk.dial("BRAV") as call:
                await call.send("RFQ", {"instrument": "EURUSD", "qty": "5000000"})
                quote = await call.receive()
                row = await call.send("HIT", {"side": "buy", "px": quote.body["ask"]})
                print(f"dealt at {quote.body['ask']}: n = {row.envelope.n}, chain {row.chain}")
        except CallEnded as over:
            print(f"they hung up: {over.reason}")
        except Refused as no:
            print(f"the wire refused: {no}")


trio.run(main)

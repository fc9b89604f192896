"""Tapes that the broker fetches for operators, from a URL of theirs (docs/reference/trial.md, Tape sources).

1. Headers may name secrets as `${NAME}`: the operators' own, and nobody else's (decision 0042). A value leaves the
   broker in the request alone.
2. Of what the source says nothing is told but the number of its status, and the number of a line that is wrong.
"""

from functools import partial
from typing import Annotated

import msgspec
from msgspec import Meta

from broker.actors.safe import OPERATORS
from broker.actors.tapesource import Told
from broker.actors.tapestore import Finish
from broker.core.push import MAX_URL, Outcome, judge_url
from broker.core.pushheaders import MOST, read_headers
from broker.core.tapes.catalog import INSTRUMENT, Item, Text
from broker.core.tapes.csvfile import CsvReader
from broker.core.tapes.source import unset, wrong
from broker.tools.context import Context, Progress
from broker.tools.lookup import disk_full
from broker.tools.registry import tool
from broker.tools.sealing import HeaderTemplates
from broker.wire.refusals import Refusal

UrlParam = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=MAX_URL,
        description="where the CSV file is: https://, on port 443, of an address that anybody can reach; it may hold "
        "no secret",
    ),
]
HeadersParam = (
    Annotated[
        HeaderTemplates,
        Meta(
            max_length=MOST,
            description='sent to the source, 8 at most, such as {"Authorization": "Bearer ${FEED_TOKEN}"}: ${NAME} is '
            "the operators' secret of that name (set_secret)",
        ),
    ]
    | None
)
InstrumentParam = Annotated[
    str, Meta(pattern=rf"^{INSTRUMENT}$(?!\n)", description="what is quoted, as plans name it: EURUSD")
]
TickParam = Annotated[
    str, Meta(max_length=32, description="the smallest step of a price, a decimal: 0.00001")
]
FeeParam = Annotated[str, Meta(max_length=32, description="what a fill costs a unit, a decimal")]
TitleParam = Annotated[Text, Meta(description="what the catalog calls it, at most 120 characters")]
LicenceParam = Annotated[Text, Meta(description="under which licence its quotes may be used")]


@tool(face="operator", title="Fetch a tape", streams=True, keyed=True)
async def fetch_tape(
    context: Context,
    url: UrlParam,
    instrument: InstrumentParam,
    tick: TickParam,
    title: TitleParam,
    licence: LicenceParam,
    fee: FeeParam = "0",
    headers: HeadersParam = None,
) -> Item | Refusal:
    """Fetch a CSV file (trial.md, Tapes) from a URL and put it into the catalog, as `turret tape import URL` does: all
    of it, or nothing and why (`reason`): the first line that is wrong, or what the source does.

    The file has a minute to come, and to read a million ticks takes up to half a minute more; with a progress token you
    are told how many bytes were read. One at a time (overloaded). Redirects are not followed. Whoever leaves stops it;
    a tape that is there already stays as it is.
    """
    services = context.services
    added = judge_url(url, loopback=services.settings.webhooks.allow_loopback) or read_headers(headers or {})
    if isinstance(added, Refusal):
        return added
    if (full := disk_full(services, "no tape was imported")) is not None:
        return full
    reader = CsvReader(instrument=instrument, tick=tick, fee=fee)
    if (complaint := reader.feed(b"")) is not None:
        return wrong(complaint)
    filled = await services.safe.fill_for(OPERATORS, added)
    if isinstance(filled, Outcome):
        return unset(filled)
    finish = partial(Finish, title=title, licence=licence, price=services.tapes.price, once=context.once)
    answer: Item | Refusal = await services.tape_source.bring(
        url, filled, reader, finish, told=_teller(context.progress)
    )
    return answer


def _teller(progress: Progress | None) -> Told | None:
    if progress is None:
        return None

    async def tell(done: int, whole: int) -> None:
        await progress(msgspec.json.encode({"bytes": done, "of": whole}))

    return tell

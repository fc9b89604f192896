"""Resources in a broker of a test's own."""

from typing import Any, Final

from broker.app import Caller
from broker.core.resource import ResourceRow, sum_of
from broker.wire.refusals import Refusal
from tests.support.broker import Bench

ROW: Final = ResourceRow(
    resource_id="rs_1",
    publisher="ag_1",
    title="Rates",
    content_type="text/plain",
    access="public",
    sha256=sum_of(b"text"),
    size=4,
    created_at=1_000,
    updated_at=1_000,
    tags=("fx", "day"),
)


async def publish(
    bench: Bench, caller: Caller, title: str = "Rates", content: str = "text", **more: Any
) -> str:
    """A new resource; its id."""
    made = await bench.call("publish_resource", caller, title=title, content=content, **more)
    assert not isinstance(made, Refusal), made
    return str(made["resource_id"])


async def read(bench: Bench, caller: Caller, resource_id: str) -> Any:
    """What read_resource answers."""
    return await bench.call("read_resource", caller, resource_id=resource_id)


async def found(bench: Bench, caller: Caller, q: str = "", **more: Any) -> list[str]:
    """The titles that a search finds, in their order."""
    answer = await bench.call("search_resources", caller, q=q, **more)
    assert not isinstance(answer, Refusal), answer
    return [each["title"] for each in answer["resources"]]

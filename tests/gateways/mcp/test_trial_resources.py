"""kestrel://catalog, kestrel://catalog/<index>, kestrel://catalog-pricing: on the endpoint and the trials' face."""

import gc
import json
from collections.abc import Iterator
from typing import Any

import pytest
import trio
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from msgspec.structs import replace

from gateways.mcp.endpoint import mcp_app
from gateways.mcp.protected import Protected
from tests.gateways.mcp.test_clients import MODES, serving
from tests.gateways.mcp.test_library_resource import Faces
from tests.support.agents import make_agent
from tests.support.broker import Bench
from tests.support.imports import bring, foreign
from tests.support.tokens import HERE, FakeBearers

# The client leaves its response iterators to the garbage collector; nothing of ours.
pytestmark = pytest.mark.filterwarnings(r"ignore:Async generator '(httpx2|httpcore2)\.:ResourceWarning")
WHOLE, PRICING = "kestrel://catalog", "kestrel://catalog-pricing"


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """What the client leaves behind is collected here, under this module's filter."""
    yield
    gc.collect()


@pytest.mark.requirement("catalog.resources")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("path", ["", "/trial"])
async def test_the_official_client_reads_the_catalog(bench: Bench, mode: str, path: str) -> None:
    tape = foreign()
    await bring(bench, tape)
    bearers = FakeBearers(bench.broker)
    bearers.give("ann", await make_agent(bench, "Ann"), until=bench.ts + 900)
    protected = Protected(HERE, bearers)  # type: ignore[arg-type]  # a fake
    headers = {"authorization": "Bearer ann", "host": "127.0.0.1:8766"}
    with trio.fail_after(20):
        async with (
            serving(mcp_app(bench.broker, protected=protected)) as url,
            create_mcp_http_client(headers) as http,
            Client(streamable_http_client(url + path, http_client=http), mode=mode) as client,
        ):
            listed = {str(each.uri) for each in (await client.list_resources()).resources}
            assert {WHOLE, PRICING} <= listed
            templates = await client.list_resource_templates()
            assert "kestrel://catalog/{index}" in {each.uri_template for each in templates.resource_templates}

            async def read(uri: str) -> Any:
                (content,) = (await client.read_resource(uri)).contents
                assert (str(content.uri), content.mime_type) == (uri, "application/json")
                return json.loads(content.text)  # type: ignore[union-attr]  # it is text

            entries = (await read(WHOLE))["entries"]
            assert [each["index"] for each in entries] == [0, 1, 2, 3, 100]
            assert entries[-1]["ref"] == tape.ref()
            assert await read("kestrel://catalog/100") == entries[-1]
            assert await read("kestrel://catalog/0") == entries[0]
            assert await read(PRICING) == {"free": True} == entries[0]["price"]


@pytest.mark.requirement("catalog.resources", "catalog.scope")
async def test_who_has_no_scope_is_told_which_and_other_faces_have_no_catalog(bench: Bench) -> None:
    ann = await make_agent(bench, "Ann")
    faces = Faces(bench, ann=ann, poor=replace(ann, scopes=frozenset({"profile"})))
    for uri in (WHOLE, PRICING, "kestrel://catalog/0", "kestrel://catalog/77"):
        assert (await faces.read("poor", uri)).status == 403
        assert (await faces.read(None, uri)).status == 401
        assert (await faces.read("ann", uri, path="/mcp/arena")).error["message"]
    for uri in ("77", "-1", "01", "x", "", "0/ticks", "9" * 10):
        answer = await faces.read("ann", f"kestrel://catalog/{uri}", path="/mcp/trial")
        assert answer.error["code"] == -32602, uri

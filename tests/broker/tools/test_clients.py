"""Whose an id is: clients as the verbs of the sign-in look them up."""

from broker.core.client import ClientRow
from broker.tools.clients import client_of
from broker.tools.context import Context
from broker.wire.refusals import Refusal
from tests.support.broker import ANYONE, Bench
from tests.support.signin import register


async def test_a_client_is_the_one_that_registered_or_that_its_document_describes(bench: Bench) -> None:
    context = Context(ANYONE, bench.broker._services)
    made = await register(bench)
    found = await client_of(context, made["client_id"])
    assert isinstance(found, ClientRow)
    assert found.client_id == made["client_id"]
    url = "https://app.example/client"
    document = {"client_id": url, "client_name": "App", "redirect_uris": ["https://app.example/back"]}
    assert isinstance(await client_of(context, url, document), ClientRow)
    for name, shown in ((url, None), ("https://app.example/", document), ("x", None), ("cl_x", None)):
        assert isinstance(await client_of(context, name, shown), Refusal)

"""An outside issuer's document: where it is looked for, and for how long it is believed."""

import httpx
import pytest

from broker.clock import VirtualClock
from gateways.oauth.issuer import DOCUMENT_S, Issuer, NoAnswer, connect, documents_of
from tests.support.broker import START_MS
from tests.support.issuer import issuing


def test_an_issuers_document_is_looked_for_where_each_form_has_it() -> None:
    assert documents_of("https://id.example/a/") == (
        "https://id.example/.well-known/oauth-authorization-server/a",
        "https://id.example/.well-known/openid-configuration/a",
        "https://id.example/a/.well-known/openid-configuration",
    )


class Hands(VirtualClock):
    """A clock whose monotonic time the test moves, over real sockets."""

    past = 0.0

    def monotonic(self) -> float:
        return self.past


@pytest.mark.requirement("oauth.introspection")
async def test_the_document_is_read_once_for_all_that_it_names_until_it_is_old_or_forgotten() -> None:
    clock = Hands(START_MS)
    async with issuing() as stub, connect(stub.url) as http:
        issuer = Issuer(stub.url, http=http, clock=clock)
        assert await issuer.find("introspection_endpoint") == f"{stub.url}/introspect"
        assert await issuer.find("token_endpoint") == f"{stub.url}/token"
        assert stub.documents == 1
        clock.past = DOCUMENT_S
        await issuer.find("token_endpoint")
        assert stub.documents == 2
        issuer.forget()
        await issuer.find("token_endpoint")
        assert stub.documents == 3


@pytest.mark.requirement("oauth.issuer-away")
@pytest.mark.parametrize("named", [None, 7, "/keys", "ftp://x/keys", "https://x/keys", "http://[::1/"])
async def test_what_a_document_names_is_a_url_of_the_issuers_scheme(named: object) -> None:
    async with issuing() as stub, connect(stub.url) as http:
        stub.changes = {"jwks_uri": named}
        issuer = Issuer(stub.url, http=http, clock=VirtualClock(START_MS))
        with pytest.raises(NoAnswer):
            await issuer.ask("GET", await issuer.find("jwks_uri"))


async def test_this_machine_is_asked_without_the_environments_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    async with issuing() as stub, connect(stub.url) as http:
        assert isinstance(http, httpx.AsyncClient)
        issuer = Issuer(stub.url, http=http, clock=VirtualClock(START_MS))
        assert await issuer.find("token_endpoint")

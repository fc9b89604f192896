"""Who asks: the address through proxies, and the proof in the Authorization header."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.actors.guard import place_of as client_of
from broker.app import Caller
from broker.wire.refusals import Refusal, refuse
from gateways import caller as module
from gateways.caller import Scope, connect, identify, read_proof, read_proxies, write_proof
from tests.support.broker_fake import DEALER_PK, FakeBroker, proof

PROXIES = read_proxies(["127.0.0.1", "10.0.0.0/8", "fd00::/16"])


def scope(peer: str | None = "127.0.0.1", query: str = "", **headers: str | list[str]) -> Scope:
    pairs = [
        (name.replace("_", "-").encode(), value.encode("latin-1"))
        for name, values in headers.items()
        for value in ([values] if isinstance(values, str) else values)
    ]
    client = (peer, 1234) if peer is not None else None
    return {"type": "http", "client": client, "headers": pairs, "query_string": query.encode()}


@pytest.mark.parametrize(
    ("peer", "forwarded", "address"),
    [
        ("203.0.113.9", None, "203.0.113.9"),
        ("203.0.113.9", "1.2.3.4", "203.0.113.9"),  # not a proxy of ours
        ("127.0.0.1", None, "127.0.0.1"),
        ("127.0.0.1", "198.51.100.7", "198.51.100.7"),
        ("127.0.0.1", "6.6.6.6, 198.51.100.7", "198.51.100.7"),  # the client wrote the first
        ("127.0.0.1", "6.6.6.6, 198.51.100.7, 10.1.2.3", "198.51.100.7"),
        ("10.9.9.9", ["6.6.6.6", "198.51.100.7,10.1.2.3"], "198.51.100.7"),
        ("127.0.0.1", "10.1.1.1, 10.2.2.2", "10.1.1.1"),
        ("127.0.0.1", "198.51.100.7:4711", "198.51.100.7"),
        ("127.0.0.1", "[2001:db8::7]:4711", "2001:db8::7"),
        ("127.0.0.1", "2001:db8::7", "2001:db8::7"),
        ("fd00::1", " 2001:DB8:0::7 ", "2001:db8::7"),
        ("::ffff:127.0.0.1", "198.51.100.7", "198.51.100.7"),
        ("127.0.0.1", "::ffff:198.51.100.7", "198.51.100.7"),
        ("127.0.0.1", "evil, 198.51.100.7", "198.51.100.7"),
    ],
)
@pytest.mark.requirement("limits.client-address")
def test_the_address_is_the_right_most_hop_that_is_no_proxy_of_ours(
    peer: str, forwarded: str | list[str] | None, address: str
) -> None:
    headers = {} if forwarded is None else {"x_forwarded_for": forwarded}
    found = connect(scope(peer, **headers), PROXIES)
    assert found == Caller(address=address, loopback=address == "127.0.0.1")


@pytest.mark.requirement("limits.client-address")
@pytest.mark.parametrize(
    "forwarded",
    [
        "",
        "  ",
        ",",
        "unknown",
        "_hidden",
        "198.51.100.7, unknown",
        "1.2.3.4,",
        "198.51.100.7:x",
        "[::1",
        "1.2.3.4 5.6.7.8",
        "\u00b2.0.0.1",
        "garbage, 10.1.2.3",
        ["127.0.0.1", ""],
    ],
)
def test_a_hop_that_can_not_be_read_makes_nobody_loopback(forwarded: str | list[str]) -> None:
    for peer in ("127.0.0.1", "10.9.9.9"):
        found = connect(scope(peer, x_forwarded_for=forwarded), PROXIES)
        assert not found.loopback
        assert peer in found.address
        assert client_of(found.address) is not None, "it is counted by all limits of the broker"


def test_loopback_is_judged_on_the_resulting_address_and_on_the_peer() -> None:
    assert connect(scope("127.8.8.8")).loopback
    assert connect(scope("::1")).loopback
    assert connect(scope("::ffff:127.0.0.1")).loopback
    assert not connect(scope("127.0.0.1", x_forwarded_for="8.8.8.8"), PROXIES).loopback
    assert not connect(scope("8.8.8.8", x_forwarded_for="127.0.0.1"), PROXIES).loopback
    assert not connect(scope("10.9.9.9", x_forwarded_for="127.0.0.1"), PROXIES).loopback, (
        "that is the proxy's own"
    )


def test_a_peer_without_an_address_is_not_loopback() -> None:
    assert connect(scope(None)) == Caller(address="unknown", loopback=False)


def test_proxies_are_addresses_or_networks() -> None:
    with pytest.raises(ValueError, match="proxy"):
        read_proxies(["proxy.example"])


async def test_no_proof_is_no_refusal() -> None:
    broker = FakeBroker()
    assert await identify(broker, scope()) == Caller()
    assert broker.admitted == []


@pytest.mark.requirement("http.authorization-turret")
async def test_a_follow_statement_in_the_header_is_given_to_the_broker_as_it_was_signed() -> None:
    broker = FakeBroker()
    statement = b'{"do":"follow","code":"ALFA"}'
    header = f"Turret {write_proof(statement, 'ab' * 64)}"
    found = await identify(broker, scope(authorization=header))
    assert found == Caller(pk=DEALER_PK, code="ALFA")  # type: ignore[arg-type]
    assert broker.admitted == [(Caller(), statement, "ab" * 64, None)]


@pytest.mark.parametrize("header", ["turret {}", "TURRET   {}", " Turret {} "])
async def test_the_scheme_is_read_in_any_case(header: str) -> None:
    found = await identify(FakeBroker(), scope(authorization=header.format(proof())))
    assert isinstance(found, Caller)
    assert found.pk == DEALER_PK


@pytest.mark.requirement("http.authorization-turret")
@pytest.mark.parametrize("header", ["Bearer abc", "Basic YTpi", "", "Bearer", "turret-x y"])
async def test_other_schemes_are_unauthenticated(header: str) -> None:
    broker = FakeBroker()
    found = await identify(broker, scope(authorization=header))
    assert isinstance(found, Refusal)
    assert (found.code, broker.admitted) == ("unauthenticated", [])


@pytest.mark.requirement("oauth.open-faces")
@pytest.mark.parametrize("header", ["Bearer t.o-k~e+n/=", "bearer   t.o-k~e+n/= ", "BEARER t.o-k~e+n/="])
async def test_a_token_goes_to_its_judge_where_the_door_has_one(header: str) -> None:
    judged: list[tuple[Caller, str]] = []

    async def judge(caller: Caller, token: str) -> Caller | Refusal:
        judged.append((caller, token))
        return refuse("unauthenticated", "no")

    broker = FakeBroker()
    found = await identify(broker, scope(authorization=header), bearer=judge)
    assert isinstance(found, Refusal)
    assert (judged, broker.admitted) == ([(Caller(), "t.o-k~e+n/=")], [])
    assert isinstance(await identify(broker, scope(authorization=f"Turret {proof()}"), bearer=judge), Caller)
    assert len(judged) == 1


@pytest.mark.parametrize(
    "text",
    ["", "abc", ".", "abc.", ".abc", "a b.c", "ab$d.c", "abcde.c", "é.c", "ab=d.c", "YQ.\u00b2", "a+b/.c"],
)
async def test_a_malformed_proof_is_a_bad_statement_and_never_reaches_the_broker(text: str) -> None:
    broker = FakeBroker()
    found = await identify(broker, scope(authorization=f"Turret {text}"))
    assert isinstance(found, Refusal)
    assert (found.code, broker.admitted) == ("bad_statement", [])
    assert len(text) < 4 or text not in found.message


async def test_what_the_broker_refuses_is_handed_on() -> None:
    broker = FakeBroker()
    broker.refuse_admission = refuse("bad_statement", "too old")
    assert await identify(broker, scope(authorization=f"Turret {proof()}")) is broker.refuse_admission


async def test_two_authorization_headers_are_refused() -> None:
    found = await identify(FakeBroker(), scope(authorization=[f"Turret {proof()}", "Bearer x"]))
    assert isinstance(found, Refusal)
    assert found.code == "bad_request"


@pytest.mark.requirement("http.auth-query")
async def test_the_query_carries_the_proof_only_where_the_door_says_so() -> None:
    asked = scope(query=f"after=0&auth={proof()}")
    assert await identify(FakeBroker(), asked) == Caller()
    found = await identify(FakeBroker(), asked, query=True)
    assert isinstance(found, Caller)
    assert found.pk == DEALER_PK
    bad = await identify(FakeBroker(), scope(query="auth="), query=True)
    assert isinstance(bad, Refusal)


async def test_the_header_stands_before_the_query() -> None:
    asked = scope(query=f"auth={proof(code='BRAV')}", authorization=f"Turret {proof(code='ALFA')}")
    found = await identify(FakeBroker(), asked, query=True)
    assert isinstance(found, Caller)
    assert found.code == "ALFA"


@given(st.binary(min_size=1, max_size=50), st.sampled_from(["", "=", "=="]))
def test_a_written_proof_is_read_back_with_or_without_padding(statement: bytes, padding: str) -> None:
    encoded, _, sig = write_proof(statement, "ab" * 64).rpartition(".")
    assert read_proof(f"{encoded}{padding}.{sig}") == (statement, "ab" * 64)


async def test_nothing_of_a_proof_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    secret = proof(code="ALFA")
    with caplog.at_level(0):
        await identify(
            FakeBroker(), scope(query=f"auth={secret}", authorization=f"Turret {secret}x$"), query=True
        )
        await identify(FakeBroker(), scope(query=f"auth={secret}"), query=True)
    assert secret not in caplog.text


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> set[object]:
    """The peers that were warned of: none yet."""
    fresh: set[object] = set()
    monkeypatch.setattr(module, "_told", fresh)
    return fresh


@pytest.mark.requirement("threat.unnamed-proxy")
@pytest.mark.parametrize("header", ["x_forwarded_for", "X_Forwarded_For", "forwarded"])
def test_a_proxy_on_this_machine_that_nobody_named_is_warned_of_once(
    header: str, told: set[object], caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        for peer in ("127.0.0.1", "::1"):
            found = connect(scope(peer, **{header: "198.51.100.7"}))
            assert found == Caller(address=peer, loopback=True)
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]
    assert "127.0.0.1 forwards for others, and behind_proxy does not name it" in caplog.text
    assert "198.51.100.7" not in caplog.text


@pytest.mark.requirement("threat.unnamed-proxy")
def test_nobody_else_is_warned_of_and_no_more_than_some(
    told: set[object], caplog: pytest.LogCaptureFixture
) -> None:
    connect(scope("127.0.0.1"))
    connect(scope("127.0.0.1", x_forwarded_for="198.51.100.7"), PROXIES)
    connect(scope("203.0.113.9", x_forwarded_for="198.51.100.7"))
    assert caplog.text == ""
    for number in range(1, 100):
        connect(scope(f"127.0.0.{number}", forwarded="for=198.51.100.7"))
    assert len(caplog.records) == len(told) == 16

"""An agent's keys as they are shown."""

from broker.tools.context import Context
from broker.tools.keys import keys_of
from broker.wire.jwk import jwk_of
from broker.wire.keys import SigningKey
from tests.support.agents import make_agent
from tests.support.broker import Bench


async def test_a_key_is_shown_as_a_jwk_and_as_the_wire_knows_it(bench: Bench) -> None:
    key = SigningKey.generate()
    ann = await make_agent(bench, "Ann", key=key)
    assert ann.agent is not None
    (shown,) = (await keys_of(Context(ann, bench.broker._services), ann.agent)).keys
    assert (shown.pk, shown.public_jwk, shown.revoked_at) == (key.pk, jwk_of(key.pk), None)

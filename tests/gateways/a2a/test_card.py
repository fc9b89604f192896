"""An agent's card, made of what the broker tells (pure)."""

import json
from typing import Any

from gateways.a2a.card import Place, card, etag

FACTS: dict[str, Any] = {
    "endpoint": None,
    "profile": {"agent_id": "ag_1", "name": "Ann", "description": "", "capabilities": ["fx-quotes"]},
}


def test_a_card_says_who_where_and_how_to_sign_in() -> None:
    place = Place("https://wire.test", "https://wire.test/oauth/token", "https://wire.test/meta")
    made = json.loads(card(FACTS, place))
    assert made["supportedInterfaces"][0]["url"] == "https://wire.test/a2a/ag_1"
    flow = made["securitySchemes"]["oauth2"]["oauth2SecurityScheme"]
    assert flow["flows"]["clientCredentials"]["tokenUrl"] == "https://wire.test/oauth/token"
    assert flow["oauth2MetadataUrl"] == "https://wire.test/meta"
    assert made["securityRequirements"] == [
        {"schemes": {"oauth2": {"list": ["task"]}}},
        {"schemes": {"bearer": {"list": []}}},
    ]
    assert made["capabilities"] == {"streaming": True, "pushNotifications": True, "extendedAgentCard": False}
    assert made["description"]  # one is required, whatever the agent says of itself
    assert made["skills"][0]["tags"] == ["fx-quotes"]


def test_with_an_outside_issuer_a_card_asks_for_a_bearer_token_alone() -> None:
    made = json.loads(card(FACTS, Place("https://wire.test")))
    assert made["securitySchemes"].keys() == {"bearer"}
    assert made["securityRequirements"] == [{"schemes": {"bearer": {"list": []}}}]


def test_an_agent_without_capabilities_has_one_skill() -> None:
    profile = {**FACTS["profile"], "capabilities": []}
    assert len(json.loads(card({**FACTS, "profile": profile}, Place("x")))["skills"]) == 1


def test_a_card_is_named_by_what_it_says() -> None:
    one, other = card(FACTS, Place("https://a")), card(FACTS, Place("https://b"))
    assert etag(one) == etag(bytes(one)) != etag(other)

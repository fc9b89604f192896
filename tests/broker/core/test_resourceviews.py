"""A resource as agents see it."""

import msgspec
from msgspec.structs import replace

from broker.core.resourceviews import published, show
from tests.support.resources import ROW


def test_all_see_its_metadata_and_its_publisher_the_sum_too() -> None:
    shown = show(replace(ROW, description="daily"))
    assert shown == {
        "resource_id": "rs_1",
        "uri": "turret://resource/rs_1",
        "title": "Rates",
        "description": "daily",
        "tags": ["fx", "day"],
        "content_type": "text/plain",
        "access": "public",
        "publisher_agent_id": "ag_1",
        "size": 4,
        "version": 1,
        "created_at": 1_000,
        "updated_at": 1_000,
    }
    assert msgspec.to_builtins(published(ROW)) == {**show(ROW), "sha256": ROW.sha256}

"""What tools answer, read by its members and over all pages."""

from typing import Any

import pytest

from gateways.client.answers import PAGE, pages, read
from gateways.client.errors import WireFault
from gateways.client.inbox import Message


def test_what_is_no_message_is_a_fault_and_what_is_unknown_is_passed_over() -> None:
    row = {"message_id": "m", "from_agent_id": "a", "from_name": "", "body": "b", "sent_at": 1, "new": 7}
    assert read(row, Message).body == "b"
    with pytest.raises(WireFault, match="Message"):
        read({**row, "body": 7}, Message)


async def test_a_list_is_read_to_its_last_page_with_the_same_params() -> None:
    asked: list[dict[str, Any]] = []

    async def ask(tool: str, *, wait_s: float = 0, **params: Any) -> dict[str, Any]:
        asked.append({"tool": tool, **params})
        return {"rows": [{"n": len(asked)}], **({"next": f"rows-{len(asked)}"} if len(asked) < 3 else {})}

    assert await pages(ask, "list_rows", "rows", kind="x") == [{"n": 1}, {"n": 2}, {"n": 3}]
    assert asked == [
        {"tool": "list_rows", "limit": PAGE, "after": after, "kind": "x"}
        for after in (None, "rows-1", "rows-2")
    ]

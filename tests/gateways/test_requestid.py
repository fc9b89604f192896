"""The id of the request at hand."""

import pytest
import trio

from gateways import requestid


@pytest.mark.requirement("observe.request-ids")
async def test_an_id_goes_where_its_task_goes_and_nowhere_else() -> None:
    seen: list[str] = []

    async def tell() -> None:
        seen.append(requestid.current())

    async def serve(name: str) -> None:
        requestid.bind(name)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(tell)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve, "first-request")
        nursery.start_soon(serve, "other-request")
    assert sorted(seen) == ["first-request", "other-request"]
    assert requestid.current() == ""


def test_a_block_belongs_to_a_request_and_what_follows_does_not() -> None:
    with requestid.bound("outer-request"):
        with requestid.bound("inner-request"):
            assert requestid.current() == "inner-request"
        assert requestid.current() == "outer-request"
    assert requestid.current() == ""


def test_each_id_is_new() -> None:
    assert len({requestid.new_id() for _ in range(1000)}) == 1000

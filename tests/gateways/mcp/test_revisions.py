"""The ladder's table."""

import pytest
from mcp_types import methods
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from gateways import jsonrpc
from gateways.mcp.revisions import LEGACY, METHODS, MODERN, SUPPORTED, Fault, row_of, status_of, unsupported


@pytest.mark.requirement("mcp.both-eras")
def test_the_newest_revision_comes_first_and_all_four_are_named() -> None:
    assert SUPPORTED == ("2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26")
    assert MODERN in MODERN_PROTOCOL_VERSIONS
    assert set(LEGACY) <= set(HANDSHAKE_PROTOCOL_VERSIONS)


@pytest.mark.parametrize("method", METHODS)
def test_every_row_agrees_with_the_official_tables(method: str) -> None:
    for revision in SUPPORTED:
        official = (method, revision) in methods.CLIENT_REQUESTS
        assert (revision in METHODS[method].revisions) == official, revision


def test_cacheable_methods_are_those_of_the_official_table() -> None:
    assert {name for name, row in METHODS.items() if row.hints is not None} == set(methods.CACHEABLE_METHODS)


@pytest.mark.parametrize(
    ("method", "revision"), [("ping", MODERN), ("server/discover", LEGACY[0]), ("x", MODERN)]
)
def test_a_method_that_a_revision_lacks_is_method_not_found(method: str, revision: str) -> None:
    row = row_of(method, revision)
    assert isinstance(row, Fault)
    assert row.code == jsonrpc.METHOD_NOT_FOUND


@pytest.mark.requirement("mcp.status-by-code")
@pytest.mark.parametrize(
    ("code", "status"),
    [
        (-32700, 400),
        (-32600, 400),
        (-32602, 400),
        (-32020, 400),
        (-32021, 400),
        (-32022, 400),
        (-32601, 404),
        (-32603, 200),
    ],
)
def test_a_code_has_its_status_in_the_modern_era_and_200_before(code: int, status: int) -> None:
    assert status_of(code, MODERN) == status
    assert status_of(code, LEGACY[0]) == 200


def test_an_unsupported_revision_is_told_all_that_are_supported() -> None:
    assert unsupported("2099-01-01").data == {"supported": list(SUPPORTED), "requested": "2099-01-01"}

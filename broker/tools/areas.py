"""The areas whose tools exist; importing this registers them."""

from broker.tools import (
    agreements,
    channels,
    directory,
    identity,
    messages,
    operators,
    owned,
    owners,
    permissions,
    registering,
    reports,
    signin,
    streams,
    tokens,
    transcripts,
    wire,
)

AREAS = (
    agreements,
    channels,
    directory,
    identity,
    messages,
    operators,
    owned,
    owners,
    permissions,
    registering,
    reports,
    signin,
    streams,
    tokens,
    transcripts,
    wire,
)
"""One module an area, one function a tool."""

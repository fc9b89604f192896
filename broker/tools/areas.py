"""The areas whose tools exist; importing this registers them."""

from broker.tools import (
    agreements,
    bindings,
    channels,
    directory,
    identity,
    messages,
    moderation,
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
    bindings,
    channels,
    directory,
    identity,
    messages,
    moderation,
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

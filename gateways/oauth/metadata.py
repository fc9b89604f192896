"""What clients are told of the faces as protected resources (pure): documents, challenges, audiences.

1. A face has one document, and its `resource` is the URL that the client typed: the path with or without a slash
   at its end, the host among the origins that are ours by the settings and never any other.
2. A token is good for the face whose URL is its audience; one for the origin's /mcp is good for all.
3. A challenge names all scopes of the face, so that a client need not come back for one after the other; one that
   has a token and lacks a scope is told that one.

Source: RFC 9728 (documents, 3.1 and 3.3; challenge, 5.1), RFC 6750 3, RFC 8707 2; MCP 2025-11-25, Authorization.
"""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from broker.wire.refusals import refuse

MCP: Final = "/mcp"
BAD: Final = refuse("unauthenticated", "the token is not valid here, or not any more")
"""What every bad token gets, whoever judged it: nothing tells made-up ones from those that are over."""
WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"
GUARDED: Final[Mapping[str, tuple[str, ...]]] = {
    "network": ("profile", "contacts", "message", "channel", "task", "resource"),
    "arena": ("arena",),
    "trial": ("trial",),
}
"""The faces that ask for a token at once, and the scopes that are of use there: a token needs one of them."""
OPEN: Final[Mapping[str, tuple[str, ...]]] = {
    "": tuple(scope for scopes in GUARDED.values() for scope in scopes),
    "wire": (),
}
"""The faces that anybody may list; "" is the endpoint itself."""


class Resources(msgspec.Struct, frozen=True, kw_only=True):
    """The faces of one broker under one issuer. `origins`: ours, `scheme://host[:port]`, the first is the one told."""

    issuer: str
    origins: tuple[str, ...]

    def document(self, path: str, host: str | None) -> dict[str, Any] | None:
        """The document at a path below WELL_KNOWN, asked for under a Host; None where there is none.

        WELL_KNOWN alone stands for the endpoint itself, for clients that look at the root.
        """
        place = path.removeprefix(WELL_KNOWN)
        if place == path:
            return None
        place = MCP if place in ("", "/") else place
        face = face_of(place)
        if face is None:
            return None
        scopes = scopes_of(face)
        return {
            "resource": self.origin(host) + place,
            "authorization_servers": [self.issuer],
            "bearer_methods_supported": ["header"],
            **({"scopes_supported": list(scopes)} if scopes else {}),
        }

    def challenge(
        self, path: str, host: str | None, error: str | None = None, scope: str | None = None
    ) -> str:
        """WWW-Authenticate for a request of a face's path. `error`: invalid_token or insufficient_scope. `scope`: what
        the request needs; else all that is of use on the face."""
        members = {"resource_metadata": f"{self.origin(host)}{WELL_KNOWN}{path}"}
        if error is not None:
            members["error"] = error
        if needed := scope or " ".join(scopes_of(face_of(path) or "")):
            members["scope"] = needed
        return "Bearer " + ", ".join(f"{name}={_quoted(value)}" for name, value in members.items())

    def audiences(self, face: str) -> frozenset[str]:
        """What a token for this face may be meant for."""
        places = {MCP, f"{MCP}/{face}"} if face else {MCP}
        return frozenset(
            f"{origin}{place}{slash}" for origin in self.origins for place in places for slash in ("", "/")
        )

    def face_at(self, resource: str) -> str | None:
        """The face whose URL a resource is, "" for the endpoint itself; None where it is not ours."""
        for origin in self.origins:
            if resource.startswith(origin) and (face := face_of(resource.removeprefix(origin))) is not None:
                return face
        return None

    def origin(self, host: str | None) -> str:
        """The origin that the client asked, by its Host header, where that is ours; else the first."""
        asked = (host or "").lower()
        return next((each for each in self.origins if urlsplit(each).netloc == asked), self.origins[0])


def origins_of(url: str, *, loopback: bool) -> tuple[str, ...]:
    """Our origins, from where the public port is found. On loopback the machine's own name is one too."""
    parts = urlsplit(url)
    here = f"{parts.scheme.lower()}://{parts.netloc.lower()}{parts.path.rstrip('/')}"
    named = f"{parts.scheme.lower()}://localhost:{parts.port}"
    return (here, named) if loopback and parts.port is not None and named != here else (here,)


def face_of(path: str) -> str | None:
    """The face that a path of the endpoint names, with or without a slash at its end; "" is the endpoint itself."""
    path = path.removesuffix("/")
    if path == MCP:
        return ""
    name = path.removeprefix(f"{MCP}/")
    return name if name != path and (name in GUARDED or (name and name in OPEN)) else None


def scopes_of(face: str) -> tuple[str, ...]:
    """The scopes that are of use on a face."""
    return GUARDED[face] if face in GUARDED else OPEN.get(face, ())


def _quoted(value: str) -> str:
    """RFC 9110 5.6.4."""
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'

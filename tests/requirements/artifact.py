"""Artifacts: who may read them, at which doors, and what is never given out; and how a page judges a session's."""

REQUIREMENTS: dict[str, str] = {
    "artifact.by-ref": "whoever has an artifact's ref reads its exact bytes; what has no such ref is NOT_FOUND",
    "artifact.intact": "bytes that do not have the hash that names them are given out by no door",
    "artifact.bounded": "an answer with an artifact has a bound at each door",
    "artifact.guessing": "an address that asks for artifacts that are not there waits, as with conversations",
    "artifact.http": "/artifact/<ref> gives the exact bytes, which a cache may keep for ever under the ref",
    "artifact.mcp": "kestrel://artifact/{ref} is a resource of /mcp and of the faces of what is played",
    "artifact.command": "`turret artifact` writes nothing whose hash is not the ref, whoever served it",
    "artifact.page-verdict": "the verify page's verdict on any artifact is that of `turret arena verify`",
    "artifact.page-shows": "the page shows a session's events and steps, what can't be checked, an unknown game",
}

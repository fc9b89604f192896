"""Artifacts that are given out damaged, endless or to guessers, and caches that keep a refusal."""

TOOL = "broker/tools/artifacts.py"
STORE = "broker/actors/artifacts.py"
HTTP = "gateways/artifacts.py"
MCP = "gateways/mcp/resources.py"
CLIENT = "gateways/client/artifacts.py"

MUTANTS = (
    ("artifact.intact", STORE, "    if ref_of(document.doc) != ref:\n", "    if False:\n"),
    ("artifact.bounded", TOOL, "if len(content) > MAX_BYTES:", "if False:"),
    ("artifact.bounded", MCP, "len(content) > ARTIFACT_BYTES:", "False:"),
    ("artifact.guessing", TOOL, "return guessed(context, NO_ARTIFACT)", "return NO_ARTIFACT"),
    ("artifact.by-ref", TOOL, " if REF.fullmatch(ref) else None", " if REF.fullmatch(ref) else b''"),
    ("artifact.http", HTTP, "known = request.if_none_match.contains_weak(ref)", "known = False"),
    ("artifact.http", HTTP, "        response.set_etag(ref)\n", ""),
    ("artifact.http", HTTP, '    "x-content-type-options": "nosniff",\n', ""),
    (
        "artifact.mcp",
        MCP,
        "return await whole(ask, uri) if uri.startswith(prefixes) else Missing(uri)",
        "return await whole(ask, uri)",
    ),
    ("artifact.command", CLIENT, "hexdigest() != ref:", "hexdigest() == '':"),
    ("artifact.command", CLIENT, "            if len(content) > MAX_BYTES:\n", "            if False:\n"),
)

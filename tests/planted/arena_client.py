"""The arena's side of the client: once, who came first, the chance, the end, and the proof."""

AGENT = "gateways/client/agent.py"
ARENA = "gateways/client/arena.py"
PROOF = "gateways/client/proof.py"

MUTANTS = (
    ("client.arena", AGENT, "            desk.arena = self.arena\n", ""),
    ("client.arena-once", ARENA, "self._unsettled[:2] != (version, wanted)", "True"),
    ("client.arena-once", ARENA, "self._unsettled[:2] != (version, wanted)", "False"),
    ("client.arena-conflict", ARENA, "                await self.refresh()\n", "                pass\n"),
    (
        "client.arena-conflict",
        ARENA,
        'if no.code in ("CONFLICT", "SESSION_OVER"):',
        'if no.code == "CONFLICT":',
    ),
    ("client.arena-chance", ARENA, 'if no.code != "CONFLICT":', "if True:"),
    ("client.arena-chance", ARENA, "if chosen != (view.commit, view.client_seed):", "if False:"),
    ("client.arena-end", ARENA, "    if not keep:\n", "    if True:\n"),
    ("client.arena-end", ARENA, 'if no.code not in ("CONFLICT", "SESSION_OVER"):', "if True:"),
    ("client.arena-verify", PROOF, "if hashlib.sha256(content).hexdigest() != ref:", "if False:"),
    ("client.arena-verify", PROOF, "if chosen is not None and chosen != ", "if False and chosen != "),
    (
        "client.arena-verify",
        PROOF,
        "if revealed and _committed(ending, played) != played.commit:",
        "if False:",
    ),
    ("client.arena-verify", PROOF, '(event.get("facts"), _change(event))', "(said.facts, _change(event))"),
    ("client.arena-verify", PROOF, 'if artifact.result.get("net") != sum(map(_change, rest)):', "if False:"),
)

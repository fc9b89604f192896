"""`turret agent`: what it signs, whom it asks, what it says of others, how it ends."""

RAILS = "gateways/agent/rails.py"
APPROVAL = "gateways/agent/approval.py"
ANSWERS = "gateways/agent/answers.py"
CALLS = "gateways/agent/calls.py"
LINE = "gateways/agent/line.py"
VERBS = "gateways/agent/verbs.py"
TOOLS = "gateways/agent/tools.py"
STDIO = "gateways/agent/stdio.py"
RUN = "gateways/agent/run.py"
SETTINGS = "gateways/agent/settings.py"

MUTANTS = (
    ("agent.cap", RAILS, "amount.copy_abs() > cap", "amount > cap"),
    ("agent.cap", RAILS, "str(key).casefold() == name.casefold()", "key == name"),
    ("agent.cap", RAILS, "            yield from _named(inner, name)\n    elif", "    elif"),
    ("agent.cap", RAILS, "for each in reversed(said)", "for each in said"),
    ("agent.cap", RAILS, "if own or type in FREE:", "if True:"),
    ("agent.cap", RAILS, "_NUMBER.fullmatch(text) is None", "False"),
    ("agent.types", RAILS, 'if type == "END":', "if False:"),
    ("agent.types", RAILS, "type not in self.types and type not in FREE", "False"),
    ("agent.counterparties", RAILS, "pk in self.counterparties", "True"),
    (
        "agent.counterparties",
        LINE,
        "self.rails.check_party(ring.caller, ring.code_from) is not None",
        "False",
    ),
    ("agent.counterparties", VERBS, "rails.check_party(deed.pk, deed.code) or ", ""),
    ("agent.guard-rail", VERBS, "        if blocked is not None:\n            return blocked\n", ""),
    ("agent.code", RAILS, "if self.code is None or code == self.code:", "if True:"),
    ("agent.ask-before", APPROVAL, "self._open.pop(ask.state, None)", "self._open.get(ask.state)"),
    ("agent.ask-before", APPROVAL, "if asked != deed or", "if asked is None or"),
    ("agent.ask-before", APPROVAL, 'if answer.get("action") == "accept":', "if True:"),
    ("agent.ask-before", APPROVAL, "ask.revision == BARE or not asking.can_ask(ask)", "False"),
    ("agent.ask-before", VERBS, "if deed.type in rails.ask_before else None", "if False else None"),
    ("agent.settings", SETTINGS, "kw_only=True, forbid_unknown_fields=True", "kw_only=True"),
    ("agent.settings", SETTINGS, "value is None or value < 0", "value is None"),
    ("agent.once", VERBS, "            held.unsettled = (type, body)\n", ""),
    ("agent.once", VERBS, "if row is None or said == (type, body):", "if row is None:"),
    ("agent.once", CALLS, " and ring.unsettled is None", ""),
    ("agent.news", CALLS, "            self.seen += 1\n", "            self.seen = len(rows)\n"),
    ("agent.news", CALLS, "                    self._told.add(ring.conv)\n", ""),
    ("agent.untrusted", ANSWERS, '{**body, "untrusted": True} if "reason" in body else body', "body"),
    ("agent.untrusted", ANSWERS, "untrusted(text) if answer.untrusted else text", "text"),
    ("agent.untrusted", APPROVAL, "printable(self.answers[1])", "self.answers[1]"),
    ("agent.refusals", ANSWERS, "known = refusal.code in CODES", "known = True"),
    ("agent.refusals", TOOLS, "            answer = from_error(error)\n", "            raise\n"),
    (
        "agent.connects",
        LINE,
        "                self.ended = from_error(fault)\n",
        "                self.ended = None\n",
    ),
    (
        "agent.connects",
        LINE,
        "with trio.move_on_after(CONNECTED_S):\n            while",
        "with trio.CancelScope():\n            while",
    ),
    (
        "agent.cancel",
        VERBS,
        "            await held.call.hang_up()\n            raise\n",
        "            raise\n",
    ),
    ("agent.connects", LINE, "                    scope.cancel()\n", "                    pass\n"),
    ("agent.cancel", STDIO, 'self._flights.cancel(value_of(params["requestId"]))', "pass"),
    ("agent.ends", LINE, "                await self.board.hang_up()\n", "                pass\n"),
    (
        "agent.ends",
        CALLS,
        "                nursery.start_soon(_hang_up, each.call)",
        "                await _hang_up(each.call)",
    ),
    (
        "agent.ends",
        STDIO,
        "        except trio.WouldBlock:\n            raise",
        "        except trio.WouldBlock:\n            return\n            raise",
    ),
    ("agent.ends", STDIO, "with trio.move_on_after(GRACE_S):", "with trio.CancelScope():"),
    ("agent.stdio", RUN, "    os.dup2(2, 1)\n", ""),
    ("agent.stdio", STDIO, "                self._reply(malformed.reply())", "                pass"),
    ("agent.stdio", STDIO, 'rb"\\u2028"', 'b"\\xe2\\x80\\xa8"'),
    ("agent.handshake", STDIO, "if VERSION_KEY in meta:", "if False:"),
    ("agent.handshake", STDIO, "else unsupported(meta[VERSION_KEY])", "else None"),
    (
        "agent.secrets",
        LINE,
        'log.info("connected, key %s, wire %s", desk.pk,',
        'log.info("connected, key %s, wire %s", desk.link.signer.key.seed,',
    ),
    ("agent.deal", CALLS, "            nursery.start_soon(self._watch, held.call)\n", "            pass\n"),
    ("agent.base-install", RUN, "import logging\n", "import logging\nimport sqlite3  # noqa: F401\n"),
)

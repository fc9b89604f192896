"""The agent's side of the client: its token, what it does once, and what it reads."""

AGENT = "gateways/client/agent.py"
ASSERTION = "gateways/client/assertion.py"
CHANNEL = "gateways/client/channel.py"
CONTACTS = "gateways/client/contacts.py"
INBOX = "gateways/client/inbox.py"
ISSUER = "gateways/client/issuer.py"
LINK = "gateways/client/agent_link.py"
REGISTRATION = "gateways/client/registration.py"
SOCKET = "gateways/client/socket.py"
TOKEN = "gateways/client/token.py"

MUTANTS = (
    ("client.agent-assertion", ASSERTION, "secrets.token_urlsafe(16)", '"the-same-for-all-of-them"'),
    ("client.agent-issuer", ISSUER, "(parts.scheme == scheme and is_here(url))", "is_here(url)"),
    (
        "client.agent-issuer",
        "gateways/http_client.py",
        "        return False",
        '        return host.startswith("127.")',
    ),
    ("client.agent-issuer", ISSUER, 'if found.get("issuer") != issuer:', "if False:"),
    ("client.agent-token", TOKEN, "RENEW * life_s", "2 * life_s"),
    ("client.agent-one-refresh", TOKEN, "if self._asked > asked and self._fault is not None:", "if False:"),
    ("client.agent-token-clock", TOKEN, "            self._correct(answer)\n", "            pass\n"),
    ("client.agent-token-clock", TOKEN, "(400, 401) and self._correct(answer)", "(400, 401) and False"),
    ("client.agent-revoked", TOKEN, "            self._token = None\n", "            pass\n"),
    ("client.agent-revoked", LINK, "if self._ended_early >= ENDED_AT_ONCE:", "if False:"),
    ("client.agent-secrets", TOKEN, "{type(fault).__name__}", "{fault}"),
    (
        "client.agent-secrets",
        SOCKET,
        "codec_log.setLevel(logging.WARNING)",
        "codec_log.setLevel(logging.DEBUG)",
    ),
    ("client.agent-once", AGENT, "if not tool.startswith(READS):", "if False:"),
    ("client.agent-once", AGENT, 'if no.code == "quota_exceeded":', "if True:"),
    ("client.agent-inbox", INBOX, "self.cursor = event.cursor", "self.cursor = self._asked_at"),
    ("client.agent-catch-up", INBOX, "if message.message_id not in self._known:", "if True:"),
    ("client.agent-catch-up", INBOX, "self._waiting.extend(reversed(found))", "self._waiting.extend(found)"),
    ("client.agent-requests", CONTACTS, "request.request_id in self._known or ", ""),
    ("client.agent-channel", CHANNEL, "        self._head = max(self._head, post.seq)\n", ""),
    ("client.agent-channel", CHANNEL, "            self._posts.clear()\n", ""),
    ("client.agent-catch-up", INBOX, "                self._behind = True\n", "                pass\n"),
    ("client.agent-channel", LINK, '{**wanted, "after_seq": follower.heard}', "wanted"),
    ("client.agent-register", REGISTRATION, "if no.code not in PASSING or", "if True or"),
)

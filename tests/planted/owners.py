"""Owners and their pages: who signs in, which forms are taken, and what is another's."""

OWNER = "broker/core/owner.py"
ACTOR = "broker/actors/owner.py"
PASSWORDS = "broker/actors/passwords.py"
ATTEMPTS = "broker/actors/attempts.py"
OWNERS = "broker/tools/owners.py"
OWNED = "broker/tools/owned.py"
BROWSER = "gateways/pages/browser.py"
SITE = "gateways/pages/site.py"
SHELL = "gateways/pages/shell.py"

MUTANTS = (
    ("owners.sessions-end", OWNER, "now_ms - each.used_at < life.idle_ms and", ""),
    ("owners.sessions-end", OWNER, " and now_ms - each.made_at < life.whole_ms", ""),
    ("owners.sessions-end", OWNER, "password=password, sessions=(Session(digest, now_ms, now_ms),)", "password=password"),
    ("owners.sessions-end", ACTOR, "                if seen != row.password:\n                    return signed_out()\n                row = core.change", "                row = core.change"),
    ("owners.one-email", ACTOR, 'Put("email", email, 0, ', 'Put("email-of", self.key, 0, '),
    ("owners.invitations", ACTOR, "invitation.expires_at > now and ", ""),
    ("owners.invitations", ACTOR, " and invitation.email in (None, email)", ""),
    ("owners.invitations", ACTOR, "puts=[*claimed, *used]", "puts=claimed"),
    ("owners.hashed-off-the-loop", PASSWORDS, "tasks_waiting >= WAITING", "tasks_waiting > 10 * WAITING"),
    ("owners.equal-answers", PASSWORDS, "password, encoded or self._nobody, limiter", 'password, encoded or "", limiter'),
    ("owners.equal-answers", OWNERS, "        return WRONG\n", '        return WRONG if owner else refuse("unauthenticated", "no such owner")\n'),
    ("owners.throttled", ATTEMPTS, "        self._emails.add(email, now)\n", ""),
    ("owners.throttled", ATTEMPTS, "            self._places.add(place, now)\n        return None\n\n    def take_back", "            pass\n        return None\n\n    def take_back"),
    ("owners.throttled", OWNERS, "    services.attempts.take_back(tried, address)\n    rehashed", "    rehashed"),
    ("pages.not-mine", OWNED, "if request.owner_id != owner_id or ", "if "),
    ("pages.not-mine", OWNED, "await find(services, request.target, owner_id)", "await find(services, request.target)"),
    ("pages.csrf", SITE, " and is_token(form.one(TOKEN), secret)", ""),
    ("pages.csrf", SITE, " or not is_ours(origin=origin, site=site, host=host, public_url=public_url)", ""),
    ("pages.csrf", BROWSER, 'site not in ("", "same-origin", "none")', 'site == "cross-site"'),
    ("pages.csrf", BROWSER, "hmac.digest(secret.encode(), _PURPOSE, hashlib.sha256)", "hmac.digest(b'', _PURPOSE, hashlib.sha256)"),
    ("pages.cookie", BROWSER, 'Path=/; HttpOnly; ', 'Path=/; '),
    ("pages.next", BROWSER, "        if parts.path in _NEXT:", "        if parts.path:"),
    ("pages.next", BROWSER, "if text.isascii() and text.isprintable():", "if True:"),
    ("pages.signed-in", SITE, "if visit.owner_id or open_to_all:", "if True:"),
    (
        "pages.hostile",
        BROWSER,
        "    except ValueError:\n        return None",
        "    except KeyError:\n        return None",
    ),
    ("pages.text", SHELL, "autoescape=True", "autoescape=False"),
    ("pages.text", SHELL, "finalize=show_text,", ""),
    ("pages.headers", SHELL, "form-action 'self'; ", ""),
)  # fmt: skip

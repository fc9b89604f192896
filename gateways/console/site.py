"""From a request of an operator's browser to a page: who it is, whether a form is ours, and what goes wrong.

What a page does is a function from a Visit to a Page or a Moved, as on the owners' pages (gateways.pages). It asks the
broker by the operators' tools alone, so that whatever it changes is audited as theirs is.
"""

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from quart import Quart, Response, request
from werkzeug.exceptions import NotFound

from broker.app import Broker, Caller
from broker.wire.refusals import Refusal
from gateways import render
from gateways.console.sessions import Session, Sessions
from gateways.console.words import clock, size, stamp
from gateways.operator.gate import OperatorGate
from gateways.pages.browser import (
    Asked,
    Form,
    new_secret,
    read_cookie,
    read_form,
    write_cookie,
)
from gateways.pages.shell import HEADERS, TEMPLATES, Moved, Page, Shell
from gateways.pages.site import STALE, message, sentence, take_form, wait_words
from gateways.pages.trialreport import STYLES

HERE: Final = Path(__file__).parent
ASSETS: Final = HERE / "assets"
SCRIPTS: Final = ("htmx.min.js", "htmx-ext-sse.js", "console.js")
SIGN_IN: Final = "/sign-in"
COOKIE: Final = "turret-operator"
POLICY: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'"
)
Shown = Page | Moved | Response
Handler = Callable[["Visit"], Awaitable[Shown]]
FROM_ELSEWHERE: Final = (
    "You come from another site",
    "Your browser tells us who you are only on a way that begins here. Go on, and it will.",
)
"""SameSite=Strict keeps the cookie back; a fresh one would take the place of the session's."""
NAV: Final = (
    ("/", "Now"),
    ("/desks", "Desks"),
    ("/calls", "Calls"),
    ("/conversations", "Conversations"),
    ("/trials", "Trials"),
    ("/reports", "Reports"),
    ("/agents", "Agents"),
    ("/owners", "Owners"),
    ("/audit", "Audit"),
    ("/health", "Health"),
)


class Visit(Asked, frozen=True, kw_only=True):
    """A request of an operator's browser."""

    secure: bool
    """Whether it came by TLS, so that its cookie is of TLS alone."""
    session: Session | None = None
    """None: nobody is signed in."""


def template_shell() -> Shell:
    """What renders the console's pages."""
    return Shell(
        folders=(HERE / "templates", TEMPLATES),
        styles=(TEMPLATES / "turret.css", *STYLES, ASSETS / "console.css"),
        at="/assets/console.css",
        headers={**HEADERS, "content-security-policy": POLICY},
        filters={"stamp": stamp, "clock": clock, "size": size},
    )


class Console:
    """The pages of one broker's operators' port."""

    def __init__(self, app: Quart, broker: Broker, gate: OperatorGate) -> None:
        self.broker = broker
        self.sessions = Sessions()
        self._app = app
        self._gate = gate
        self._shell = template_shell()
        self._assets = {name: (ASSETS / name).read_bytes() for name in SCRIPTS}
        digests = {name: hashlib.sha256(text).hexdigest()[:12] for name, text in self._assets.items()}
        self._scripts = [f"/assets/{name}?{digest}" for name, digest in digests.items()]
        app.add_url_rule("/assets/<name>", "an asset", self._asset)
        app.register_error_handler(NotFound, self._nothing)

    def get(self, path: str, handler: Handler, *, open_to_all: bool = False) -> None:
        """A page at `path`; its parameters are in the visit's query. Who is not signed in is led to sign in."""
        self._add(path, "GET", handler, open_to_all)

    def post(self, path: str, handler: Handler, *, open_to_all: bool = False) -> None:
        """Where a form goes. It was made by a page of ours, for this browser."""
        self._add(path, "POST", handler, open_to_all)

    async def ask(self, session: Session | None, tool: str, **params: Any) -> Any:
        """Call an operators' tool as who signed in: plain JSON values, or the Refusal. `None` of the params stays
        away. Only pages for who is signed in ask anything."""
        assert session is not None
        given = {name: value for name, value in params.items() if value is not None}
        answer = await self.broker.call(session.operator, tool, msgspec.json.encode(given))
        if isinstance(answer, Refusal):
            return answer
        return msgspec.json.decode(msgspec.json.encode(answer))  # raw parts become values, too

    async def admit(self, visit: Visit, token: str) -> Caller | Refusal:
        """Whether this is the operators' token; wrong ones are counted."""
        return await self._gate.admit(visit.caller, token)

    def sign_in(self, visit: Visit, secret: str, path: str) -> Moved:
        """On with another cookie."""
        return Moved(path, {"set-cookie": write_cookie(secret, visit.secure, COOKIE, "Strict")})

    def part(self, template: str, values: Mapping[str, Any]) -> str:
        """A piece of a page, for a live one."""
        return self._shell.render(template, values)

    def _add(self, path: str, method: str, handler: Handler, open_to_all: bool) -> None:
        async def view(**parts: str) -> Response:
            try:
                return await self._answer(handler, open_to_all, parts)
            except Exception as fault:
                number = render.incident(fault, f"{method} {path}")
                words = f"It is our fault, not yours. The log has it under the number {number}."
                return self._respond(message("Something went wrong here", words, status=500), None)

        self._app.add_url_rule(path, f"{method} {path}", view, methods=[method])

    async def _answer(self, handler: Handler, open_to_all: bool, parts: Mapping[str, str]) -> Response:
        visit = await self._visit(parts)
        if isinstance(visit, Page):
            return self._respond(visit, None)
        if visit.session is None and not open_to_all:
            return self._respond(Moved(SIGN_IN), visit)
        return self._respond(await handler(visit), visit)

    def _respond(self, shown: Shown, visit: Visit | None) -> Response:
        if isinstance(shown, Response):
            return shown
        signed = visit is not None and visit.session is not None
        common = {
            "token": visit.token if visit is not None else "",
            "path": visit.path if visit is not None else "",
            "nav": NAV if signed else (),
            "scripts": self._scripts if signed else (),
            "key": new_secret(),
        }
        response = self._shell.respond(shown, common)
        if visit is not None and visit.fresh and isinstance(shown, Page):
            cookie = write_cookie(visit.secret, visit.secure, COOKIE, "Strict")
            response.headers.setdefault("set-cookie", cookie)
        return response

    async def _visit(self, parts: Mapping[str, str]) -> Visit | Page:
        secure = self._gate.by_tls(request.scheme, request.headers.get("host", ""))
        sent = read_cookie(request.headers.getlist("cookie"), secure, COOKIE)
        if sent is None and request.headers.get("sec-fetch-site") == "cross-site":
            return message(*FROM_ELSEWHERE, back=request.path)
        query = read_form(request.query_string) or Form()
        visit = Visit(
            caller=self._gate.connect(dict(request.scope)),
            path=request.path,
            query=Form({**query.fields, **{name: [value] for name, value in parts.items()}}),
            secret=sent or new_secret(),
            fresh=sent is None,
            secure=secure,
            session=self.sessions.find(sent) if sent is not None and not _is_part_of_another() else None,
        )
        if request.method != "POST":
            return visit
        form = await take_form(sent)
        if form is None:
            return message(*STALE, status=403, back="/")
        return msgspec.structs.replace(visit, form=form)

    async def _asset(self, name: str) -> Response:
        if name == "console.css":
            return self._shell.respond_style()
        if name not in self._assets:
            return await self._nothing(NotFound())
        return self._shell.respond_asset(self._assets[name], "text/javascript; charset=utf-8")

    async def _nothing(self, _: NotFound) -> Response:
        """A path that there is not, for whoever comes by it: a page that leads on."""
        return self._respond(message("There is nothing like that here", "", status=404, back="/"), None)


def _is_part_of_another() -> bool:
    """Whether a page of others has the browser ask, for an image or a frame of its own (Fetch Metadata): by the cookie,
    which goes from every port of this machine, it would keep a session in use, and take the places of live pages."""
    elsewhere = request.headers.get("sec-fetch-site", "") in ("same-site", "cross-site")
    return elsewhere and request.headers.get("sec-fetch-dest", "") != "document"


def away(refusal: Refusal, back: str = "/") -> Page:
    """A refusal as a page."""
    if refusal.code == "rate_limited":
        text = f"This was tried too often. Try again in {wait_words(refusal)}."
        return message("Too many tries", text, status=429, back=back)
    title = "There is nothing like that here" if refusal.status == 404 else "This can’t be done"
    return message(title, sentence(refusal.message), status=refusal.status, back=back)

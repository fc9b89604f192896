"""From a request of a browser to a page: who it is, whether a form is ours, and what goes wrong, for people.

What a page does is a function from a Visit to a Page or a Moved. It asks the broker by verbs (face "signin") alone.
"""

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final
from urllib.parse import quote

import msgspec
from quart import Quart, Response, request

from broker.app import Broker
from broker.wire.refusals import Refusal
from gateways import render
from gateways.caller import connect
from gateways.listen import Network
from gateways.pages.browser import (
    TOKEN,
    Form,
    Visit,
    is_ours,
    is_token,
    new_secret,
    read_cookie,
    read_form,
    write_cookie,
)
from gateways.pages.shell import STYLE, Moved, Page, Shell

Shown = Page | Moved
Handler = Callable[[Visit], Awaitable[Shown]]

STALE: Final = (
    "This form can’t be taken",
    "It is too old, was made for somebody else, or your browser keeps no cookie of this site. Nothing was changed. "
    "Open the page anew, and try again.",
)
SIGN_IN: Final = "/sign-in"


class Site:
    """The pages of one broker."""

    def __init__(
        self, app: Quart, broker: Broker, *, proxies: Sequence[Network] = (), public_url: str | None = None
    ) -> None:
        self._app = app
        self._broker = broker
        self._proxies = proxies
        self._public_url = public_url
        self._secure = (public_url or broker.mcp_url or "").startswith("https:")
        self._shell = Shell()
        self.sign_up = broker.settings.owners.sign_up or "invitation"
        """Who may sign up (setting owners.sign_up)."""

        @app.get(STYLE)
        async def style() -> Response:
            return self._shell.respond_style()

    def get(self, path: str, handler: Handler, *, open_to_all: bool = False, has_form: bool = True) -> None:
        """A page at `path`. Who is not signed in is led to sign in first, and back. Without a form that changes
        something (`has_form`) nobody is given a cookie for it."""
        self._add(path, "GET", handler, open_to_all, has_form)

    def post(self, path: str, handler: Handler, *, open_to_all: bool = False) -> None:
        """Where a form goes. It was made by a page of ours, for this browser."""
        self._add(path, "POST", handler, open_to_all, True)

    async def ask(self, visit: Visit, verb: str, **params: Any) -> Any:
        """Ask the broker: plain JSON values, or the Refusal. `None` of the params stays away."""
        given = {name: value for name, value in params.items() if value is not None}
        answer = await self._broker.signin(visit.caller, verb, msgspec.json.encode(given))
        return answer if isinstance(answer, Refusal) else msgspec.to_builtins(answer)

    async def ask_list(self, visit: Visit, verb: str) -> tuple[str, Any]:
        """What an agent has of a kind: `all` or `open`, as the address says, and a page of them, or the Refusal."""
        which = "open" if visit.query.one("which") == "open" else "all"
        params = {
            "agent_id": visit.query.one("agent"),
            "which": which,
            "after": visit.query.one("after") or None,
        }
        return which, await self.ask(visit, verb, owner_id=visit.owner_id, **params)

    def asset(self, name: str, text: bytes, kind: str) -> str:
        """A file that pages load, under /pages/: its address, which changes with it."""

        async def view() -> Response:
            return self._shell.respond_asset(text, kind)

        self._app.add_url_rule(f"/pages/{name}", f"an asset: {name}", view)
        return f"/pages/{name}?{hashlib.sha256(text).hexdigest()[:12]}"

    def sign_in(self, session: str, path: str) -> Moved:
        """On with another cookie: somebody is signed in from now on."""
        return Moved(path, {"set-cookie": write_cookie(session, self._secure)})

    def _add(self, path: str, method: str, handler: Handler, open_to_all: bool, has_form: bool) -> None:
        async def view() -> Response:
            try:
                return await self._answer(handler, open_to_all, has_form)
            except Exception as fault:
                return self._fault(render.incident(fault, f"{method} {path}"))

        self._app.add_url_rule(path, f"{method} {path}", view, methods=[method])

    async def _answer(self, handler: Handler, open_to_all: bool, has_form: bool) -> Response:
        visit = await self._visit()
        if isinstance(visit, Page):
            return self._shell.respond(visit, _nobody())
        if visit.owner_id or open_to_all:
            shown = await handler(visit)
        else:
            shown = Moved(f"{SIGN_IN}?next={quote(_back_to(visit), safe='')}")
        response = self._shell.respond(
            shown, {"owner": visit.email, "token": visit.token, "path": visit.path, "next": ""}
        )
        if visit.fresh and has_form and isinstance(shown, Page):
            response.headers.setdefault("set-cookie", write_cookie(visit.secret, self._secure))
        return response

    async def _visit(self) -> Visit | Page:
        """Who asks for what; a page where the request can't be taken."""
        sent = read_cookie(request.headers.getlist("cookie"), self._secure)
        visit = Visit(
            caller=connect(dict(request.scope), self._proxies),
            path=request.path,
            query=read_form(request.query_string) or Form(),
            secret=sent or new_secret(),
            fresh=sent is None,
        )
        if request.method == "POST":
            form = await take_form(sent, self._public_url)
            if form is None:
                return message(*STALE, status=403, back=_back_to(visit))
            visit = msgspec.structs.replace(visit, form=form)
        if sent is None:
            return visit
        signed = await self.ask(visit, "session", session=sent)
        if not isinstance(signed, Refusal):
            return msgspec.structs.replace(visit, owner_id=signed["owner_id"], email=signed["email"])
        return visit if signed.code == "unauthenticated" else away(signed)

    def _fault(self, number: str) -> Response:
        words = (
            "Something went wrong here",
            "It is our fault, not yours. Go back and try again; if it stays so, tell the operators the number "
            f"{number}.",
        )
        return self._shell.respond(message(*words, status=500), _nobody())


async def take_form(secret: str | None, public_url: str | None = None) -> Form | None:
    """The form of the request at hand, if a page of ours made it for the browser whose cookie is this; else None."""
    given = request.headers
    origin, site, host = given.get("origin", ""), given.get("sec-fetch-site", ""), given.get("host", "")
    if secret is None or not is_ours(origin=origin, site=site, host=host, public_url=public_url):
        return None
    form = read_form(await request.get_data(cache=False, as_text=False, parse_form_data=False))
    return form if form is not None and is_token(form.one(TOKEN), secret) else None


def _back_to(visit: Visit) -> str:
    """The page that was asked for, or from which a form came."""
    ask = visit.form.one("ask")
    if ask:
        return f"{visit.path}?ask={quote(ask, safe='')}"
    return visit.here if visit.path not in ("/sign-out", "/consent") or visit.query.fields else "/owner"


def message(title: str, text: str, *, status: int = 200, back: str = "") -> Page:
    """A page that says one thing, with a way on: `back` is one of our paths."""
    return Page("message.html", {"title": title, "text": text, "back": back}, status)


def away(refusal: Refusal) -> Page:
    """A refusal that no field is to blame for."""
    if refusal.code in ("overloaded", "unavailable", "in_doubt"):
        text = "The broker can’t do this at the moment. Wait a little, and try again."
        return message("Not just now", text, status=refusal.status)
    if refusal.code == "rate_limited":
        text = f"This was tried too often. Try again in {wait_words(refusal)}."
        return message("Too many tries", text, status=429)
    if refusal.code in ("not_found", "NOT_FOUND", "unauthenticated"):
        text = "It may be over, or it was answered already. Look at your page for what there is."
        return message("There is nothing like that here", text, status=404, back="/owner")
    return message("This can’t be done", sentence(refusal.message), status=refusal.status, back="/owner")


def wait_words(refusal: Refusal) -> str:
    """How long to wait, as people say it."""
    seconds = max(1, -(-int(refusal.detail.get("retry_after_ms", 1000)) // 1000))
    if seconds < 90:
        return f"{seconds} second{'s' if seconds != 1 else ''}"
    minutes = -(-seconds // 60)
    return f"{minutes} minutes"


def sentence(text: str) -> str:
    """A refusal's words as a sentence."""
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


def _nobody() -> dict[str, Any]:
    return {"owner": "", "token": "", "path": "", "next": ""}

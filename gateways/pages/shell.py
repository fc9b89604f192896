"""From a template to an answer: every page has the same frame, the same headers, and no text but as text.

1. A page loads nothing but our own style: no script, no image, no font, nothing of others (Content-Security-Policy).
   One that renews itself (gateways.pages.sessions) also loads a script of ours, and needs it for nothing else.
2. What people wrote is escaped where it is written out, and stands in a <bdi>, so that no letters of another direction
   turn the words around it.
3. A form goes to us alone: who leaves for another site leaves by a page with a link (`back.html`), since browsers hold
   a form's redirects to form-action too.
"""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import jinja2
import msgspec
from quart import Response

TEMPLATES: Final = Path(__file__).parent / "templates"
STYLE: Final = "/pages/turret.css"
HEADERS: Final = {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": "default-src 'none'; style-src 'self'; form-action 'self'; frame-ancestors 'none'; "
    "base-uri 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # Under `no-referrer` browsers send a form with `Origin: null`, which is nobody's; other sites get none here either.
    "referrer-policy": "same-origin",
    "cache-control": "no-store",
}
"""Of every page."""
_CONTROLS: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufdd0-\ufdef\ufffe\uffff]"
)
"""What HTML may not hold, and what turns the direction of letters by force: `moc.elpmaxe` must not look as another."""


class Page(msgspec.Struct, frozen=True):
    """A page to show: its template, what it says, and its status."""

    template: str
    values: dict[str, Any] = {}
    status: int = 200
    headers: dict[str, str] = {}


class Moved(msgspec.Struct, frozen=True):
    """303 to one of our own paths, after a form."""

    path: str
    headers: dict[str, str] = {}


class Shell:
    """Renders pages; made once."""

    def __init__(
        self,
        folders: Sequence[Path] = (TEMPLATES,),
        styles: Sequence[Path] = (TEMPLATES / "turret.css",),
        at: str = STYLE,
        headers: Mapping[str, str] = MappingProxyType(HEADERS),
        filters: Mapping[str, Callable[[Any], str]] = MappingProxyType({}),
    ) -> None:
        """Templates are looked for in `folders`, the first that has one; `styles` are one sheet, which stands `at`."""
        self.style = b"".join(path.read_bytes() for path in styles)
        self._headers = dict(headers)
        self._templates = jinja2.Environment(
            loader=jinja2.FileSystemLoader(folders),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            finalize=show_text,
        )
        self._templates.globals["style"] = f"{at}?{hashlib.sha256(self.style).hexdigest()[:12]}"
        self._templates.filters.update(day=show_day, iso=iso, **filters)

    def respond(self, shown: Page | Moved, common: Mapping[str, Any]) -> Response:
        """The answer with the headers of every page. `common`: what every template may say (owner, token …)."""
        if isinstance(shown, Moved):
            response = Response(b"", 303)
            response.headers.update({**self._headers, "location": shown.path, **shown.headers})
            return response
        text = self.render(shown.template, {**common, **shown.values})
        response = Response(text.encode(), shown.status)
        response.headers.update({**self._headers, **shown.headers})
        return response

    def render(self, template: str, values: Mapping[str, Any]) -> str:
        """A template's text, alone."""
        return self._templates.get_template(template).render(values)

    def respond_style(self) -> Response:
        """The one style sheet."""
        return self.respond_asset(self.style, "text/css; charset=utf-8")

    def respond_asset(self, text: bytes, kind: str) -> Response:
        """A file that pages load, kept by browsers for good: its address has to change with it."""
        response = Response(text)
        response.headers.update(
            {
                "content-type": kind,
                "cache-control": "public, max-age=31536000, immutable",
                "x-content-type-options": "nosniff",
            }
        )
        return response


def show_day(ms: int) -> str:
    """A moment as people read it: `30 Nov 2026, 18:05 UTC`."""
    return f"{datetime.fromtimestamp(ms / 1000, UTC):%-d %b %Y, %H:%M} UTC"


def iso(ms: int) -> str:
    """A moment as programs read it."""
    return f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%dT%H:%MZ}"


def show_text(value: Any) -> Any:
    """Letters that no page may hold, or that turn others round, are shown as what can't be shown.

    (Markup is ours, and has none.)"""
    if type(value) is str:
        return _CONTROLS.sub("\ufffd", value)
    return value

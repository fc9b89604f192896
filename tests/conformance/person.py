"""An owner with a browser of few wits: it follows links, fills in forms, and keeps cookies."""

from html.parser import HTMLParser
from typing import Final
from urllib.parse import urlencode, urljoin

import httpx

PASSWORD: Final = "a long and quiet password"
HOPS: Final = 10


class Form(HTMLParser):
    """The fields of the form of a page that is sent to a path, and where the page leads back to."""

    def __init__(self, text: str, path: str) -> None:
        super().__init__()
        self.found = False
        self.fields: list[tuple[str, str]] = []
        self.back: str | None = None
        self._path = path
        self._inside = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._inside = given.get("action") == self._path
            self.found = self.found or self._inside
        elif tag == "a" and given.get("id") == "back":
            self.back = given["href"]
        elif tag == "input" and self._inside and "name" in given and _is_sent(given):
            self.fields.append((given["name"], given.get("value", "")))


def _is_sent(given: dict[str, str]) -> bool:
    """Whether a browser sends this field, if nobody touches it."""
    return given.get("type") not in ("radio", "checkbox") or "checked" in given


class Person:
    """An owner who signs up where there is none yet, and allows what is asked."""

    def __init__(self, origin: str) -> None:
        self._http = httpx.Client(base_url=origin, follow_redirects=False, timeout=10, trust_env=False)
        self._origin = origin
        self._post("/sign-up", self._http.get("/sign-up").text, email="judge@example.org", password=PASSWORD)

    def allow(self, url: str) -> str:
        """Go where a client sends its user, allow it, and go back with the answer; gives the last URL.

        Raises RuntimeError where there is no way on.
        """
        answer = self._http.get(url)
        for _ in range(HOPS):
            if answer.is_redirect:
                url = urljoin(str(answer.url), answer.headers["location"])
                answer = self._http.get(url)
                continue
            form = Form(answer.text, "/consent")
            if form.back is not None:
                self._http.get(form.back)
                return form.back
            if not form.found:
                break
            answer = self._post("/consent", answer.text, decision="allow")
        raise RuntimeError(f"no way on from {url.partition('?')[0]}")

    def _post(self, path: str, page: str, **values: str) -> httpx.Response:
        fields = [(name, value) for name, value in Form(page, path).fields if name not in values]
        return self._http.post(
            path,
            content=urlencode([*fields, *values.items()]),
            headers={"content-type": "application/x-www-form-urlencoded", "origin": self._origin},
        )

    def close(self) -> None:
        """Close the browser."""
        self._http.close()

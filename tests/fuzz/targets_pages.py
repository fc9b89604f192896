"""The owners' pages: whatever a browser sends, the answer is a page that is sound, and shows what was sent as text."""

import re
from functools import cache
from typing import Any
from urllib.parse import urlencode

import trio

from gateways.listen import Bounds
from gateways.pages import browser
from gateways.pages.routes import register
from gateways.pages.shell import HEADERS
from gateways.web import quart_app
from gateways.wrappers import Origins, check_origin
from tests.fuzz.harness import Meter, Target, in_loop
from tests.fuzz.inputs import TOKENS
from tests.fuzz.targets_doors import parted
from tests.fuzz.targets_wire import expect
from tests.gateways.pages.conftest import AGENT_ID, SESSION, Verbs
from tests.gateways.pages.test_consent import ASKED
from tests.gateways.pages.test_owned import AGENT, AGREEMENT, GRANT, REQUEST
from tests.support.html import Document

CONTROLS = re.compile(b"[\x00-\x08\x0a-\x1f\x7f]")
"""What no header has that h11 lets by."""
COOKIE = f"cookie: turret={SESSION}"


@cache
def application() -> Any:
    """The pages in front of verbs that say what is asked for back."""
    app, verbs = quart_app(), Verbs()
    verbs.answers |= {
        "my_agents": {"agents": [AGENT]},
        "waiting_requests": {"requests": [REQUEST]},
        "list_grants": {"grants": [GRANT]},
        "authorization_request": lambda params: {**ASKED, "client_name": params["ask"] or "An app"},
        "decide_authorization": {"redirect": "https://app.example/back?code=c"},
        "search_directory": lambda params: {"agents": [{**AGENT, "name": params.get("query", "Bob")}]},
        "sign_in": lambda params: {"owner_id": "", "email": params["email"], "session": SESSION},
        "sign_up": lambda params: {"owner_id": "", "email": params["email"], "session": SESSION},
        "my_agent": lambda params: {
            "agent": {**AGENT, "name": params["agent_id"] or "Bob"},
            "agreements": [AGREEMENT],
        },
        **{verb: {} for verb in ("sign_out", "claim_agent", "decide_request", "revoke_grant")},
        **{verb: {} for verb in ("choose_policy", "revoke_agent_key", "end_agreement")},
        "change_password": {"session": SESSION},
    }
    register(app, verbs)  # type: ignore[arg-type]
    return check_origin(app, Origins(), Bounds(linger_s=0))  # type: ignore[arg-type]


async def visit(data: bytes) -> None:
    verb, path, head, body = parted(data)
    place, _, query = f"/{path.removeprefix('/')}".partition("?")  # others were refused before
    head = [(name, value) for name, value in head if not CONTROLS.search(name + value)]
    hosted = any(name == b"host" for name, _ in head)
    sent: list[dict[str, Any]] = []
    given = False

    async def receive() -> dict[str, Any]:
        nonlocal given
        if given:
            await trio.sleep_forever()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        await trio.lowlevel.checkpoint()
        sent.append(message)

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": verb,
        "scheme": "http",
        "path": place,
        "raw_path": place.encode("latin-1"),
        "root_path": "",
        "query_string": query.encode("ascii", "ignore"),  # h11 takes no other target
        "headers": [*([] if hosted else [(b"host", b"turret.test")]), *head],
        "client": ("203.0.113.7", 50000),
        "server": ("turret.test", 80),
    }
    await application()(scope, receive, send)
    sound(sent)


def sound(sent: list[dict[str, Any]]) -> None:
    status, said = sent[0]["status"], {name.lower(): value for name, value in sent[0]["headers"]}
    expect(status < 500, f"status {status}")
    if not said[b"content-type"].startswith(b"text/html"):
        return
    for name, value in HEADERS.items():
        expect(said[name.encode()] == value.encode(), f"{name}: {said[name.encode()]!r}")
    if status == 303:
        expect(
            said[b"location"].startswith(b"/") and said[b"location"][1:2] != b"/", f"to {said[b'location']!r}"
        )
        return
    text = b"".join(message.get("body", b"") for message in sent[1:]).decode()
    if text.startswith('<div id="live"'):  # a part of a page
        return
    expect(Document(text).faults == [], f"{Document(text).faults}")


def pages(data: bytes, meter: Meter) -> None:
    text = data.decode("latin-1")
    for reader in (browser.read_form, lambda data: browser.read_cookie([text], secure=False)):
        meter.call(reader, data)
    place = meter.call(browser.read_next, text)
    expect(place.startswith("/") and place[1:2] != "/" and place.isprintable(), f"leads to {place!r}")
    in_loop(visit, meter, data)


def form(path: str, **fields: Any) -> bytes:
    body = urlencode({"token": browser.token_of(SESSION), **fields}, doseq=True)
    return f"POST {path}\n{COOKIE}\n\n{body}".encode()


SEEDS = [
    *(f"GET {path}\n{COOKIE}\n\n".encode() for path in (
        "/sign-in?next=/owner", "/sign-up?invitation=abc", "/owner?done=claimed", "/owner/claim", "/owner/requests",
        "/owner/agent?id=ag_01KVY19F5JERCW57K0QBWQ1Y7N&done=key",
        "/owner/sessions?agent=ag_01KVY19F5JERCW57K0QBWQ1Y7N&which=open&after=open-7",
        "/owner/trials?agent=ag_01KVY19F5JERCW57K0QBWQ1Y7N&which=open&after=open-7",
        "/owner/session?id=as_01KVY19F5JERCW57K0QBWQ1Y7N&before=3", "/owner/session/live?id=as_1&since=1&mark=1.0",
        "/owner/grants", "/owner/password", "/consent?ask=abc", "/directory?q=%D9%85%F0%9F%98%80&capability=fx",
    )),
    b"GET /sign-in?next=%2Fowner\nhost: turret.test\norigin: http://turret.test\n\n",
    form("/sign-in", email="ann@x.example", password="correct horse", next="/consent?ask=abc"),
    form("/sign-up", email="ann@x.example", password="correct horse", invitation="abc"),
    form("/owner/claim", code="ABCDE-FGHJK-MNPQR-STVWX"),
    form("/owner/requests", request_id="cr_1", decision="accept", scope=["message", "channel"], ttl_days="7"),
    form("/owner/requests", request_id="cr_1", decision="accept", ttl_days="x"),
    form("/owner/grants", grant_id="gr_1"),
    form("/owner/agent", id=AGENT_ID, do="key", kid="k"),
    form("/owner/agent", id="<b>", do="policy", policy="deny"),
    form("/owner/session", id="as_01KVY19F5JERCW57K0QBWQ1Y7N", key="k"),
    form("/owner/password", password="old", new_password="correct horse"),
    form("/consent", ask="abc", decision="allow", subject=AGENT_ID, scope=["message"]),
    form("/consent", ask="<b>", decision="allow"),
    form("/sign-out"),
]  # fmt: skip
PAGE_TOKENS = [
    b"%", b"%00", b"%ff", b"%ED%A0%80", b"%E2%80%AE", b"&", b"=", b"+", b";", b"<script>", b"'\"><b>", b"]]>", b"<!--",
    b"&lt;", b"{{7*7}}", b"{% raw %}", b"\\", b"//", b"javascript:", b"\n", b"token=", b"scope=", b"?next=//x.example",
    b"turret=", b"__Host-turret=", b"\xff", b"origin: null\n", b"sec-fetch-site: cross-site\n", *TOKENS[:4],
]  # fmt: skip

TARGETS = [Target("pages", pages, SEEDS, PAGE_TOKENS, examples=120)]

"""The page that verifies transcripts gives the verdict of `turret verify`, word for word.

What it is tried on: every transcript that tests/broker/wire/test_chain.py judges, the wire's vectors, and those of
others for signatures and for JSON.
"""

import base64
import io
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from broker.wire.canonical import parse
from broker.wire.keys import verify
from broker.wire.refusals import Refusal
from gateways.client.verify import MAX_LINE, as_json
from gateways.verifying.page import verify_page
from tests.broker.wire import test_chain
from tests.broker.wire.test_keys import SMALL_ORDER, SPECCHECK, WYCHEPROOF
from tests.browser.conftest import NARROW, WIDE, Look, Opened, Watched
from tests.support.vectors import KEYS, REFUSED, SUITE, VALID, VECTORS, envelope_rows, export_lines

Case = tuple[bytes, tuple[str, ...]]

JUDGE = """async cases => {
  const bytes = text => Uint8Array.from(atob(text), each => each.charCodeAt(0));
  const found = [];
  for (const [text, wires] of cases) found.push(await turret.verifyTranscript(bytes(text), wires));
  return found;
}"""
SIGNED = """async cases => {
  const bytes = hex => Uint8Array.from(hex.match(/../g) || [], each => parseInt(each, 16));
  const found = [];
  for (const [pk, message, sig] of cases) found.push(await turret.verifySignature(pk, bytes(message), sig));
  return found;
}"""
READ = """texts => texts.map(text => {
  const {value, fault} = new turret.JsonReader(text).read();
  return fault ? [fault.path, fault.message] : turret.canonicalText(value);
})"""


@pytest.fixture
def page_file(tmp_path: Path) -> str:
    """The page as a file's URL: it needs no server."""
    path = tmp_path / "verify.html"
    path.write_bytes(verify_page().html)
    return path.as_uri()


def expected(case: Case) -> dict[str, Any]:
    """What `turret verify --json` says of a file with this text."""
    text, wires = case
    verdict = test_chain.verify_transcript(iter(partial(io.BytesIO(text).readline, MAX_LINE), b""), wires)
    return json.loads(json.dumps(as_json(verdict)))  # type: ignore[no-any-return]


def judged(monkeypatch: pytest.MonkeyPatch) -> list[Case]:
    """The texts of all transcripts that the chain's own tests judge."""
    cases: dict[Case, None] = {}
    real = test_chain.verify_transcript

    def noted(lines: Any, wires: Any = ()) -> Any:
        kept = list(lines)
        with suppress(TypeError, ValueError):  # some rows have no text
            texts = [text_of(each) for each in kept]
            text = b"".join(each if each.endswith(b"\n") else each + b"\n" for each in texts)
            cases[text, tuple(wires)] = None
        return real(kept, wires)

    monkeypatch.setattr(test_chain, "verify_transcript", noted)
    for test in [each for name, each in vars(test_chain).items() if name.startswith("test_")]:
        for arguments in arguments_of(test):
            test(**arguments)
    monkeypatch.undo()
    return list(cases)


def text_of(line: Any) -> bytes:
    """A line as a file has it. Raises TypeError or ValueError for a row that is none."""
    if isinstance(line, bytes):
        return line
    if isinstance(line, str):
        return line.encode("utf-8", "surrogatepass")
    if not all(isinstance(name, str) for name in line):
        raise TypeError("a name that is no text")
    return json.dumps(line).encode()


def arguments_of(test: Callable[..., None]) -> Iterator[dict[str, Any]]:
    """What a parametrized test is called with; nothing for one that asks for nothing."""
    marks = [each for each in getattr(test, "pytestmark", ()) if each.name == "parametrize"]
    if not marks:
        yield {}
    for mark in marks:
        names = (mark.args[0],) if isinstance(mark.args[0], str) else mark.args[0]
        for values in mark.args[1]:
            yield dict(zip(names, (values,) if len(names) == 1 else values, strict=True))


def refused() -> Iterator[Case]:
    """The wire's vectors that are refused, each as the next line of its conversation; and texts of odd sizes."""
    for each in REFUSED:
        rows = each["so_far"]["rows"] if each.get("so_far") else []
        lines = [msgspec.json.encode({"sig": row["sig"], "envelope": row["envelope"]}) for row in rows]
        submit = each["submit"]
        last = b'{"sig":%b,"envelope":%b}' % (
            json.dumps(submit.get("sig")).encode(),
            str(submit.get("envelope_json", "{}")).encode(),
        )
        yield b"\n".join([*lines, last]), ()
    deal = b"\n".join(export_lines("deal"))
    yield from (
        (text, ()) for text in (b"", b"\n\n", b"no", b"\xff\xfe\n", b"[" * 9000, deal, deal + b"\n\x0b\n")
    )
    yield b"0" * (MAX_LINE + 9), ()
    yield b" " * (MAX_LINE + 9) + b"\n" + deal, ()
    yield deal.replace(b'"chain"', b'"own":{"a":1,"a":2},"chain"', 1), ()
    yield deal.replace(b'"chain"', b'"\\u0063hain":7,"chain"', 1), ()
    yield deal.replace(b"\n", b"\r\n").replace(b'"n":', b'"n" :\t'), ()
    for name in VALID:
        yield b"\n".join(export_lines(name)), (KEYS["wire"].pk,)


@pytest.mark.requirement("verifypage.same-verdict")
def test_every_transcript_gets_the_verdict_of_turret_verify(
    page_file: str, open_page: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = open_page(WIDE).page
    page.goto(page_file)
    cases = [*judged(monkeypatch), *refused()]
    kept = cases[:300] + cases[300:-200:5] + cases[-200:]
    found = page.evaluate(JUDGE, [[base64.b64encode(text).decode(), list(wires)] for text, wires in kept])
    assert len(kept) > 500
    for case, verdict in zip(kept, found, strict=True):
        assert verdict == expected(case), case
    assert {verdict["ok"] for verdict in found} == {True, False}
    codes = {verdict["broken"]["code"] for verdict in found if verdict["broken"]}
    assert codes >= {
        "bad_chain", "bad_envelope", "bad_prev_sig", "bad_request", "bad_signature", "conflict", "conv_ended",
        "not_a_party", "not_found", "out_of_turn", "too_large", "unknown_wire_key",
    }  # fmt: skip


@pytest.mark.requirement("verifypage.strict")
def test_signatures_are_judged_as_libsodium_judges_them(page_file: str, open_page: Opened) -> None:
    page = open_page(WIDE).page
    page.goto(page_file)
    cases = [(pk, case["msg"], case["sig"]) for pk, case in WYCHEPROOF]
    cases += [(case["pub_key"], case["message"], case["signature"]) for case in SPECCHECK]
    key = KEYS["alpha"]
    sig = key.sign(b"deal")
    order = 2**252 + 27742317777372353535851937790883648493
    high = (int.from_bytes(bytes.fromhex(sig[64:]), "little") + order).to_bytes(32, "little").hex()
    text = b"deal".hex()
    cases += [(key.pk, text, sig), (key.pk, text, sig[:64] + high), (key.pk.upper(), text, sig)]
    cases += [(pk, text, point + "00" * 32) for pk in SMALL_ORDER for point in SMALL_ORDER]
    cases += [(key.pk, text, point + sig[64:]) for point in SMALL_ORDER]
    found = page.evaluate(SIGNED, [list(each) for each in cases])
    for (pk, message, each), good in zip(cases, found, strict=True):
        assert good is verify(pk, bytes.fromhex(message), each), (pk, message, each)
    assert found.count(True) > 80


@pytest.mark.requirement("verifypage.strict", "verifypage.unable")
def test_what_libsodium_refuses_by_its_form_is_refused_whatever_the_browser_takes(
    page_file: str, open_page: Opened
) -> None:
    page = open_page(WIDE).page
    page.add_init_script("SubtleCrypto.prototype.verify = async () => true")
    page.goto(page_file)
    page.wait_for_selector("#unable:not([hidden])")
    assert "takes signatures that the wire refuses" in page.inner_text("#unable")
    key, text = KEYS["alpha"], b"deal".hex()
    sig = key.sign(b"deal")
    field, order = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493
    little = [(field + each).to_bytes(32, "little").hex() for each in range(19)]
    bad = [*SMALL_ORDER, *little, *(each[:-2] + "ff" for each in little)]
    scalars = [each.to_bytes(32, "little").hex() for each in (order, order + 1, 2**253, 2**256 - 1)]
    cases = [(point, text, sig) for point in bad] + [(key.pk, text, point + sig[64:]) for point in bad]
    cases += [(key.pk, text, sig[:64] + scalar) for scalar in scalars]
    assert set(page.evaluate(SIGNED, [list(each) for each in cases])) == {False}
    last = (order - 1).to_bytes(32, "little").hex()
    fine = [(key.pk, text, sig), (key.pk, text, sig[:64] + last)]
    assert page.evaluate(SIGNED, [list(each) for each in fine]) == [True, True]


@pytest.mark.requirement("verifypage.strict")
def test_json_is_read_as_the_wire_reads_it(page_file: str, open_page: Opened) -> None:
    page = open_page(WIDE).page
    page.goto(page_file)
    texts = []
    for path in [*SUITE, *sorted((VECTORS / "jcs/testdata").glob("*put/*.json"))]:
        try:
            texts.append(path.read_bytes().decode())
        except UnicodeDecodeError:
            continue
    names = json.loads((VECTORS / "naughty/blns.json").read_text())
    texts += [json.dumps({each: [each]}) for each in names]
    texts += [
        '{"a":{"b":[1,{"c":9007199254740992}]}}',
        '[{"":{"x":1,"\\u0078":2}}]',
        '"\\ud800"',
        "-0",
        "1e-400",
    ]
    texts += [
        "[" * 33 + "]" * 33,
        '{"a' + "b" * 300 + '":{"c":1e17}}',
        '{"\\n":{"q":1,"q":1}}',
        "5e-324",
        "1e21",
    ]
    found = page.evaluate(READ, texts)
    for text, read in zip(texts, found, strict=True):
        ours = parse(text.encode())
        if isinstance(ours, Refusal):
            assert read == [ours.detail.get("path"), ours.message], text
        else:
            assert read == ours[1].decode(), text
    assert sum(isinstance(each, str) for each in found) > 500


def choose(watched: Watched, rows: list[bytes], name: str = "deal.jsonl") -> None:
    file = {"name": name, "mimeType": "application/jsonl", "buffer": b"\n".join(rows)}
    watched.page.set_input_files("#file", file)
    watched.page.wait_for_selector("#status.good, #status.bad")


@pytest.mark.requirement("verifypage.shows")
@pytest.mark.parametrize("look", [WIDE, NARROW], ids=str)
def test_each_step_of_each_row_is_shown_and_the_first_that_breaks(
    page_file: str, open_page: Opened, look: Look
) -> None:
    watched = open_page(look._replace(scripts=True))
    page = watched.page
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(page_file)
    watched.seen("empty")
    rows = export_lines("deal")
    choose(watched, rows)
    assert (
        page.inner_text("#status") == f"Holds: {len(rows)} envelopes of conversation {VALID['deal']['conv']}"
    )
    assert page.locator("#rows > li").count() == len(rows)
    assert page.locator("#rows .steps .bad").count() == 0
    assert page.locator("#rows .steps .good").count() == 6 * len(rows)
    page.locator("#rows details").first.locator("summary").click()
    assert envelope_rows("deal")[0]["canonical"] in page.inner_text("#rows > li:first-child")
    assert json.loads(page.text_content("#json"))["ok"] is True
    watched.seen("holds")
    choose(watched, [*rows[:3], rows[3].replace(b'"ts":17', b'"ts":18'), *rows[4:]], "damaged.jsonl")
    page.wait_for_selector("#status.bad")
    assert page.inner_text("#status") == "Breaks at n = 3 (line 4): bad_signature"
    assert page.locator("#rows > li").count() == 4
    steps = page.locator("#rows > li:last-child .steps")
    assert steps.locator(".bad").inner_text().split("\n")[0].startswith("✗ Signature")
    assert (steps.locator(".good").count(), steps.locator(".open").count()) == (1, 4)
    watched.seen("breaks")
    assert [each for each in asked if not each.startswith(("file:", "data:"))] == []


@pytest.mark.requirement("verifypage.shows")
def test_the_wires_end_counts_once_its_key_is_named_and_a_paste_serves_too(
    page_file: str, open_page: Opened
) -> None:
    watched = open_page(WIDE)
    page = watched.page
    page.goto(page_file)
    rows = [json.loads(each) for each in export_lines("ended_by_the_wire")]
    named = rows[0]["envelope"]["body"].get("wire")
    page.locator("details.field summary").first.click()
    page.fill("#text", "\n".join(map(json.dumps, rows)))
    page.click("#paste")
    page.wait_for_selector("#status.good, #status.bad")
    assert ("unknown_wire_key" in page.inner_text("#status")) is (named is None)
    page.fill("#wire", "not a key")
    page.keyboard.press("Tab")
    assert page.is_visible("#wire-error")
    page.fill("#wire", KEYS["wire"].pk)
    page.keyboard.press("Tab")
    page.wait_for_selector("#status.good")
    assert page.is_hidden("#wire-error")
    assert "ended by the wire" in page.inner_text("#summary")


SLOW = """slow => {
  const read = File.prototype.arrayBuffer;
  const gate = new Promise(open => globalThis.openGate = open);
  File.prototype.arrayBuffer = async function () {
    if (this.name === "slow.jsonl") await gate;
    if (this.name === "gone.jsonl") throw new DOMException("gone", "NotReadableError");
    return read.call(this);
  };
}"""


@pytest.mark.requirement("verifypage.of-this-file")
def test_no_verdict_stands_beside_a_file_that_it_is_not_of(page_file: str, open_page: Opened) -> None:
    watched = open_page(WIDE)
    page = watched.page
    page.goto(page_file)
    page.evaluate(SLOW)
    good = export_lines("deal")
    bad = [*good[:3], good[3].replace(b'"ts":17', b'"ts":18'), *good[4:]]
    choose(watched, good)
    assert page.inner_text("#status").startswith("Holds")
    choose(watched, good, "gone.jsonl")
    assert (page.inner_text("#status"), page.is_hidden("#report")) == (
        "The browser can’t read this file",
        True,
    )
    page.set_input_files(
        "#file", {"name": "slow.jsonl", "mimeType": "application/jsonl", "buffer": b"\n".join(good)}
    )
    assert page.inner_text("#status") == "Reading slow.jsonl …"
    choose(watched, bad, "bad.jsonl")
    page.evaluate("openGate()")
    page.wait_for_timeout(100)
    assert page.inner_text("#status") == "Breaks at n = 3 (line 4): bad_signature"
    choose(watched, good)
    page.locator("details.field summary").first.click()
    page.fill("#wire", "no key")
    page.keyboard.press("Tab")
    choose(watched, bad, "bad.jsonl")
    assert page.inner_text("#status").startswith("Nothing is verified yet")
    assert page.is_hidden("#report")
    page.fill("#wire", "")
    page.keyboard.press("Tab")
    page.wait_for_function("document.getElementById('status').textContent.startsWith('Breaks at n = 3')")


@pytest.mark.requirement("verifypage.hostile")
def test_what_a_transcript_holds_is_text_and_never_markup(page_file: str, open_page: Opened) -> None:
    watched = open_page(WIDE)
    page = watched.page
    page.goto(page_file)
    naughty = json.loads((VECTORS / "naughty/blns.json").read_text())
    size = 60
    talk = test_chain.open_talk()
    for start in range(0, len(naughty), size):
        talk.say(
            "CHAT", {"text": naughty[start : start + size], "<img src=x onerror=alert(1)>": "\u202eevil"}
        )
    talk.say("END", {"reason": "<script>alert(1)</script>\x1b[2J"})
    elements = "document.querySelectorAll('img, iframe, object, embed, svg, video, audio, form, base').length"
    choose(watched, [json.dumps(row).encode() for row in talk.rows])
    assert page.inner_text("#status").startswith("Holds")
    assert "<img src=x onerror=alert(1)>" in page.inner_text("#rows")
    assert "<script>alert(1)</script>" in page.inner_text("#summary")
    assert "\u202e" not in page.inner_text("#rows")
    choose(watched, [b'{"envelope":{"<img src=x onerror=alert(1)>":1},"sig":""}'])
    page.wait_for_selector("#status.bad")
    choose(watched, [b'{"<b>":1,"envelope":{}}'])
    assert page.evaluate(elements) == 0
    assert page.evaluate("document.scripts.length") == 1


@pytest.mark.requirement("verifypage.shows")
def test_a_long_transcript_is_shown_in_parts(page_file: str, open_page: Opened) -> None:
    watched = open_page(WIDE)
    page = watched.page
    page.goto(page_file)
    talk = test_chain.open_talk()
    for _ in range(148):
        talk.say("CHAT", {"text": "on"})
    choose(watched, [json.dumps(row).encode() for row in talk.rows])
    assert page.locator("#rows > li").count() == 100
    page.click("#more")
    assert page.locator("#rows > li").count() == 150
    assert page.is_hidden("#more")


@pytest.mark.requirement("verifypage.unable")
@pytest.mark.parametrize("missing", ["subtle", "algorithm"])
def test_a_browser_that_can_not_verify_says_so(page_file: str, open_page: Opened, missing: str) -> None:
    page = open_page(WIDE).page
    scripts = {
        "subtle": "Object.defineProperty(globalThis, 'isSecureContext', {value: false})",
        "algorithm": "SubtleCrypto.prototype.importKey = async () => { throw new Error('unknown') }",
    }
    page.add_init_script(scripts[missing])
    page.goto(page_file)
    page.wait_for_selector("#unable:not([hidden])")
    assert {"subtle": "https", "algorithm": "Ed25519"}[missing] in page.inner_text("#unable")
    assert page.is_hidden("#ask")

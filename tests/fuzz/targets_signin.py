"""What is read of those who sign in, before anybody knows who they are."""

import json

from joserfc.jwk import OKPKey

from broker.core.client import ClientRow, described, redirect_of, wrong_client_url, wrong_redirect
from broker.core.grant import read_code, read_refresh
from broker.wire import canonical
from broker.wire.refusals import Refusal
from gateways.oauth import access, assertion, forms, jose
from gateways.oauth.keys import SigningKeys
from gateways.outbound import NotPublic, Outbound, is_public
from tests.fuzz.harness import Meter, Target
from tests.fuzz.inputs import TOKENS
from tests.fuzz.targets_wire import expect
from tests.support.signin import CHALLENGE, ISSUER, REDIRECT, RESOURCE, VERIFIER

NOW = 1_782_345_678_000
AGENT = "ag_01ARZ3NDEKTSV4RRFFQ69G5FAV"
GRANT = "gr_01ARZ3NDEKTSV4RRFFQ69G5FAV"
KEYS = SigningKeys.open(None, NOW)
GOOD = access.mint(
    KEYS, NOW, "j", ISSUER, sub=AGENT, aud=RESOURCE, client_id="cl_x", scope="message"
).encode()
OTHER = OKPKey.generate_key("Ed25519")
CLAIMS = {"iss": AGENT, "sub": AGENT, "aud": ISSUER, "exp": NOW // 1000 + 60, "jti": "j"}
PARTS = [
    b"eyJhbGciOiJub25lIn0", b"eyJhbGciOiJIUzI1NiJ9", b'{"alg":"none"}', b'"kid":', b'"crit":["exp"]', b".", b"..", b"=",
    b"_", b"-", b"+", b"/", b"A", b"\n",
]  # fmt: skip


def token(data: bytes, meter: Meter) -> None:
    """An access token of ours is the one that we made, and no other text; others' are none."""
    text = data.decode("latin-1")
    found = meter.call(access.read, KEYS, NOW, ISSUER, text)
    expect(found is None or data == GOOD, "another text is taken for our token")
    read = meter.call(jose.read, text)
    if read is not None:
        meter.call(jose.verified, read, [OTHER], jose.ASYMMETRIC)
        meter.call(assertion.is_good, read.claims, AGENT, ISSUER, NOW // 1000)


def key_set(data: bytes, meter: Meter) -> None:
    """Whatever an issuer gives for its keys, only public ones that can verify come of it."""
    document = canonical.read(data)
    keys = meter.call(jose.read_keys, document)
    expect(all(key.key_type in ("OKP", "EC", "RSA") and not key.is_private for key in keys), "no public key")


def form(data: bytes, meter: Meter) -> None:
    """A form is texts, each once, or a refusal; so is Basic; codes and refresh tokens name a grant."""
    text = data.decode("latin-1")
    read = meter.call(forms.read_form, text)
    expect(isinstance(read, Refusal) or all(read.values()), "a parameter without a value")
    meter.call(forms.read_basic, text)
    for found in (meter.call(read_code, text), meter.call(read_refresh, text)):
        expect(found is None or found[0].startswith("gr_"), "no grant")


def client(data: bytes, meter: Meter) -> None:
    """A client's metadata makes a client whose redirects are good, or is refused."""
    document = canonical.read(data)
    made = meter.call(described, "cl_x", document, default="none")
    if isinstance(made, ClientRow):
        expect(all(wrong_redirect(each) is None for each in made.redirects), "a redirect that is none")
        expect(made.name.isprintable(), "a name that hides something")


def url(data: bytes, meter: Meter) -> None:
    """A URL leads to https or to this machine, and is asked only where it is public; else it is refused."""
    text = data.decode("latin-1")
    if meter.call(wrong_redirect, text) is None:
        expect(
            text.startswith(("https://", "http://127.0.0.1", "http://[::1]", "http://localhost")),
            "led elsewhere",
        )
    here = ClientRow("cl_x", "x", ("http://127.0.0.1/back",))
    found = meter.call(redirect_of, here, text)
    expect(found is None or found.startswith("http://127.0.0.1"), "led elsewhere")
    meter.call(wrong_client_url, text)
    meter.call(is_public, text)
    try:
        parts, port = meter.call(Outbound()._target, text)
        expect((parts.scheme, port) == ("https", 443), "another port")
    except NotPublic:
        pass


ASSERTION = jose.signed({"alg": "EdDSA", "kid": OTHER.thumbprint()}, CLAIMS, OTHER).encode()
FORMS = [
    f"grant_type=authorization_code&code={GRANT}.{'c' * 43}&code_verifier={VERIFIER}&redirect_uri={REDIRECT}".encode(),
    f"response_type=code&client_id=cl_x&code_challenge={CHALLENGE}&code_challenge_method=S256&state=a+b".encode(),
    b"Basic YWdfeDpzM2NyZXQ=",
    f"{GRANT}.{'f' * 22}.{'t' * 43}".encode(),
    f"{GRANT}.{'c' * 43}".encode(),
]
METADATA = [
    json.dumps({"client_name": "An app", "redirect_uris": [REDIRECT, "https://app.example/back"]}).encode(),
    b'{"redirect_uris":["https://a.example/"],"client_uri":"https://a.example","grant_types":["authorization_code"]}',
]
URLS = [
    REDIRECT.encode(), b"https://app.example/client.json", b"http://[::1]:8080/x?y=z", b"https://[::ffff:7f00:1]/",
    b"http://127.0.0.1:1@evil.example/", b"64:ff9b::7f00:1", b"2002:7f00:1::",
]  # fmt: skip
URL_TOKENS = [b"http://", b"https://", b"//", b"@", b":", b"#", b"?", b"\\", b"..", b"%2e", b"[", b"]", b"\x00", b"\n",
              b"127.0.0.1", b"localhost", b"\xe2\x80\xae", b"0x7f", b"*"]  # fmt: skip
SETS = [
    json.dumps({"keys": [OTHER.as_dict(private=False)]}).encode(),
    json.dumps({"keys": [OTHER.as_dict(private=True), {"kty": "RSA", "n": "A" * 342, "e": "AQAB"}]}).encode(),
    b'{"keys":[{"kty":"EC","crv":"P-256","x":"AA","y":"AA"},{"kty":"oct","k":"AA"}]}',
]

TARGETS = [
    Target("access token", token, [GOOD, ASSERTION], PARTS, examples=400),
    Target(
        "key set",
        key_set,
        SETS,
        [*TOKENS, b'"kty"', b'"RSA"', b'"n":', b'"d":', b'"use":"enc"'],
        examples=300,
    ),
    Target("sign-in form", form, FORMS, [b"&", b"=", b"%", b"%00", b"%ff", b"+", b"Basic ", b".", b";"]),
    Target("client metadata", client, METADATA, [*TOKENS, b'"redirect_uris":', b"https://", b"\xe2\x80\xae"]),
    Target("redirect", url, URLS, URL_TOKENS),
]

"""What a client may say of itself, and where its user may be sent."""

import pytest

from broker.core.client import (
    ClientRow,
    described,
    is_loopback,
    is_plain,
    proves,
    redirect_of,
    wrong_client_url,
    wrong_redirect,
)
from broker.core.secret import digest
from broker.wire.refusals import Refusal

BACK = "https://app.example/back"


def client(*redirects: str) -> ClientRow:
    made = described("cl_x", {"redirect_uris": list(redirects)}, default="none")
    assert isinstance(made, ClientRow), made
    return made


def test_what_is_not_known_is_passed_over() -> None:
    made = described("cl_x", {"redirect_uris": [BACK, BACK], "logo_uri": 7, "x": {}}, default="none")
    assert made == ClientRow("cl_x", "app.example", (BACK,))


@pytest.mark.parametrize("metadata", [None, 7, "x", [], {}, {"redirect_uris": [7]}, {"redirect_uris": None}])
def test_what_is_no_metadata_is_refused(metadata: object) -> None:
    assert isinstance(described("cl_x", metadata, default="none"), Refusal)


@pytest.mark.requirement("signin.redirect")
@pytest.mark.parametrize(
    "uri",
    [
        BACK,
        "https://app.example",
        "https://app.example:8443/a/b?c=d&e",
        "https://xn--bcher-kva.example/x",
        "http://127.0.0.1",
        "http://127.0.0.1:65535/x?y",
        "http://[::1]:1/",
        "http://localhost/x",
        "https://127.0.0.1:8443/x",
        "https://[2001:db8::1]/x",
        "https://intranet/x",
        "https://a_b.example.com:443/x",
    ],
)
def test_a_good_redirect_is_https_or_on_this_machine(uri: str) -> None:
    assert wrong_redirect(uri) is None


@pytest.mark.requirement("signin.redirect")
@pytest.mark.parametrize(
    "uri",
    [
        "", "/back", "//app.example/back", "HTTPS://app.example/back", "https:app.example", "https://",
        "https://:443/x", "https://a:b@app.example/", "https://app.example:99999/", "https://app.example:0/",
        "https://app.example:x/", "https://[::1", "https://app.example/#", "https://app.example/\n",
        "https://app.example/\x00", "https://app.example\\@evil.example/", "https://bücher.example/",
        "http://127.0.0.1:0/", "http://127.0.0.1:65536/", "http://127.0.0.2/", "http://127.0.0.1.evil.example/",
        "http://localhost.evil.example/", "http://localhost@evil.example/", "http://[::1].evil.example/",
        "http://0.0.0.0/", "http://2130706433/", "https://good.example%2eevil.example/", "https://%6cocalhost/",
        "https://good.example;.evil.example/", "https://2130706433/", "https://0x7f.1/", "https://127.1/",
        "https://evil.example.0x7f000001/", "https://./", "https://a..b/", "https://[evil.example]/",
        "https://*.app.example/", "https://1.2.3.04/", "https://app.example$evil/", "data:text/html,x", "javascript:1", "file:///etc/passwd",
    ],
)  # fmt: skip
def test_no_other_redirect_is_good(uri: str) -> None:
    assert wrong_redirect(uri) is not None
    assert redirect_of(client("http://127.0.0.1/"), uri) is None


@pytest.mark.requirement("signin.redirect")
def test_the_port_alone_may_differ_and_on_this_machine_alone() -> None:
    here = client("http://127.0.0.1:5/x?y=1")
    assert redirect_of(here, "http://127.0.0.1:9/x?y=1") == "http://127.0.0.1:9/x?y=1"
    assert redirect_of(here, "http://127.0.0.1/x?y=1") == "http://127.0.0.1/x?y=1"
    assert redirect_of(here, "http://127.0.0.1:9/x") is None
    assert redirect_of(here, "http://[::1]:9/x?y=1") is None
    assert redirect_of(client(BACK), "https://app.example:443/back") is None
    for mine in (
        "http://[::1]:9/x",
        "https://localhost/x",
        "https://app.localhost/x",
        "https://127.0.0.2:8443/x",
        "https://[::ffff:127.0.0.1]/",
    ):
        assert is_loopback(mine)
    for other in (BACK, "https://127.example/x", "https://localhost.example/x", "https://[::2]/x"):
        assert not is_loopback(other)


@pytest.mark.requirement("signin.documents")
@pytest.mark.parametrize(
    ("url", "good"),
    [
        ("https://app.example/client.json", True),
        ("https://app.example/a/b?c=d", True),
        ("https://app.example:8443/a", True),
        ("https://app.example", False),
        ("https://app.example/", False),
        ("https://app.example/a#b", False),
        ("https://app.example/a/./b", False),
        ("https://app.example/../b", False),
        ("https://app.example/%2E%2e/b", False),
        ("https://u:p@app.example/a", False),
        ("http://app.example/a", False),
        ("https://app.example/a b", False),
        ("https://" + "a" * 2048 + "/x", False),
    ],
)
def test_a_client_id_may_be_a_url_with_a_path(url: str, good: bool) -> None:
    assert (wrong_client_url(url) is None) is good


@pytest.mark.requirement("signin.client-secret")
def test_a_secret_is_compared_by_its_digest() -> None:
    public = client(BACK)
    private = ClientRow("cl_y", "y", (BACK,), method="client_secret_post", secret_hash=digest("s"))
    assert proves(public, None)
    assert not proves(public, "")
    assert proves(private, "s")
    assert not any(proves(private, wrong) for wrong in (None, "", "t", digest("s")))


@pytest.mark.parametrize(
    ("text", "plain"),
    [("Bücher & Co", True), ("名前", True), ("a\u200bb", False), ("a\u202eb", False), ("a\nb", False),
     ("a\u2028b", False), ("a\x00", False), ("\ue000", False), ("\u3164", False), ("a\u2800b", False),
     ("\ufe0f", False), ("\u2764\ufe0f", True)],
)  # fmt: skip
def test_a_name_hides_nothing(text: str, plain: bool) -> None:
    assert is_plain(text) is plain

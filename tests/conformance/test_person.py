"""What the judges' browser sees of a page."""

from tests.conformance.person import Form

PAGE = """
<form method="post" action="/sign-out"><input type="hidden" name="token" value="a"></form>
<form method="post" action="/consent">
<input type="hidden" name="token" value="b&amp;c"><input name="empty">
<input type="radio" name="who" value="1"><input type="radio" name="who" value="2" checked>
<input type="checkbox" name="what" value="3" checked><button name="decision" value="allow">Allow</button></form>
"""


def test_a_form_is_found_by_its_path_and_sends_what_is_chosen() -> None:
    form = Form(PAGE, "/consent")
    assert form.found
    assert form.fields == [("token", "b&c"), ("empty", ""), ("who", "2"), ("what", "3")]
    assert not Form(PAGE, "/other").found


def test_a_way_back_is_seen() -> None:
    assert (
        Form('<a id="back" href="http://127.0.0.1/?a=b&amp;c=d">x</a>', "/").back
        == "http://127.0.0.1/?a=b&c=d"
    )

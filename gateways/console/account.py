"""Sign in with the operators' token, and sign out."""

from broker.wire.refusals import Refusal
from gateways.console.site import SIGN_IN, Console, Shown, Visit
from gateways.pages.browser import new_secret
from gateways.pages.shell import Moved, Page
from gateways.pages.site import wait_words


def register(console: Console) -> None:
    """Add the pages."""

    async def show(visit: Visit) -> Shown:
        return Moved("/") if visit.session is not None else _page({}, 200)

    async def sign_in(visit: Visit) -> Shown:
        given = visit.form.one("operator_token").strip()
        if not given:
            return _page({"operator_token": "Enter the operators’ token."}, 400)
        answer = await console.admit(visit, given)
        if isinstance(answer, Refusal):
            if answer.code == "rate_limited":
                words = f"Too many tries. Wait {wait_words(answer)}, and then try again."
                return _page({"operator_token": words}, 429)
            return _page({"operator_token": "That is not the operators’ token."}, 401)
        console.sessions.close(visit.secret)
        return console.sign_in(visit, console.sessions.open(answer), "/")

    async def sign_out(visit: Visit) -> Shown:
        console.sessions.close(visit.secret)
        return console.sign_in(visit, new_secret(), SIGN_IN)

    console.get(SIGN_IN, show, open_to_all=True)
    console.post(SIGN_IN, sign_in, open_to_all=True)
    console.post("/sign-out", sign_out, open_to_all=True)


def _page(errors: dict[str, str], status: int) -> Page:
    return Page("sign_in.html", {"errors": errors}, status)

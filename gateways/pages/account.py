"""Sign up, sign in, sign out, change the password."""

from typing import Final

from broker.wire.refusals import Refusal
from gateways.pages.browser import Visit, new_secret, read_next
from gateways.pages.shell import Moved, Page
from gateways.pages.site import Shown, Site, away, message, sentence, wait_words

WRONG: Final = "The e-mail or the password is wrong. Check both, and try again."
FIELDS: Final[dict[str, str]] = {
    "email": "Enter an e-mail such as name@example.org.",
    "invitation": "This invitation can’t be used. Check the code, or ask the operators for another one.",
}
"""What to do about a field, by its path; else the refusal's own words."""
TAKEN: Final = "There is an owner with this e-mail. Sign in instead, or use another one."


def register(site: Site) -> None:
    """Add the pages."""
    _add_sign_in(site)
    _add_sign_up(site)
    _add_password(site)


def _add_sign_in(site: Site) -> None:
    async def show_sign_in(visit: Visit) -> Shown:
        if visit.owner_id:
            return Moved(read_next(visit.query.one("next")))
        return sign_in_page(visit.query.one("next"))

    async def sign_in(visit: Visit) -> Shown:
        form = visit.form
        email, next = form.one("email"), form.one("next")
        missing = {name: words for name, words in ASKED.items() if not form.one(name).strip()}
        if missing:
            return sign_in_page(next, email, missing, 400)
        answer = await site.ask(visit, "sign_in", email=email, password=form.one("password"))
        if not isinstance(answer, Refusal):
            return site.sign_in(answer["session"], read_next(next))
        if answer.code == "unauthenticated":
            return sign_in_page(next, email, {"email": WRONG}, 401)
        if answer.code == "rate_limited":
            words = f"Too many tries. Wait {wait_words(answer)}, and then try again."
            return sign_in_page(next, email, {"email": words}, 429)
        return away(answer) if answer.retryable else sign_in_page(next, email, {"email": WRONG}, 401)

    async def sign_out(visit: Visit) -> Shown:
        answer = await site.ask(visit, "sign_out", session=visit.secret)
        return away(answer) if isinstance(answer, Refusal) else site.sign_in(new_secret(), "/sign-in")

    site.get("/sign-in", show_sign_in, open_to_all=True)
    site.post("/sign-in", sign_in, open_to_all=True)
    site.post("/sign-out", sign_out, open_to_all=True)


def _add_sign_up(site: Site) -> None:
    async def show_sign_up(visit: Visit) -> Shown:
        if visit.owner_id:
            return Moved(read_next(visit.query.one("next")))
        return sign_up_page(visit, {}, visit.query.one("invitation"))

    async def sign_up(visit: Visit) -> Shown:
        form = visit.form
        invitation = form.one("invitation").strip()
        if site.sign_up == "closed" and not invitation:
            return sign_up_page(visit, {})
        params = {name: form.one(name) for name in ("email", "password")}
        if site.sign_up == "invitation" or invitation:
            params["invitation"] = invitation
        answer = await site.ask(visit, "sign_up", **params)
        if not isinstance(answer, Refusal):
            return site.sign_in(answer["session"], read_next(form.one("next")))
        if answer.code == "rate_limited" or answer.retryable:
            return away(answer)
        return sign_up_page(visit, field_errors(answer, "email"), invitation)

    def sign_up_page(visit: Visit, errors: dict[str, str], invitation: str = "") -> Shown:
        if site.sign_up == "closed" and not invitation:
            words = "Owners are made by the operators of this broker. Ask them, and then sign in."
            return message("Nobody signs up here", words, status=403, back="/sign-in")
        values = {
            "email": visit.form.one("email"),
            "invitation": invitation,
            "invited": site.sign_up == "invitation" or bool(invitation),
            "next": visit.form.one("next") or visit.query.one("next"),
            "errors": errors,
        }
        return Page("sign_up.html", values, 400 if errors else 200)

    site.get("/sign-up", show_sign_up, open_to_all=True)
    site.post("/sign-up", sign_up, open_to_all=True)


def _add_password(site: Site) -> None:
    async def show_password(visit: Visit) -> Shown:
        return password_page(visit.query.one("done") == "changed", {})

    async def change_password(visit: Visit) -> Shown:
        form = visit.form
        answer = await site.ask(
            visit,
            "change_password",
            owner_id=visit.owner_id,
            password=form.one("password"),
            new_password=form.one("new_password"),
        )
        if not isinstance(answer, Refusal):
            return site.sign_in(answer["session"], "/owner/password?done=changed")
        if answer.code == "rate_limited" or answer.retryable:
            return away(answer)
        return password_page(False, field_errors(answer, "password"))

    site.get("/owner/password", show_password)
    site.post("/owner/password", change_password)


ASKED: Final = {"email": "Enter your e-mail.", "password": "Enter your password."}


def sign_in_page(next: str, email: str = "", errors: dict[str, str] | None = None, status: int = 200) -> Page:
    """The form to sign in; what was typed as the e-mail stays, the password never does."""
    return Page("sign_in.html", {"email": email, "next": next, "errors": errors or {}}, status)


def password_page(changed: bool, errors: dict[str, str]) -> Page:
    """The form to change the password."""
    return Page("password.html", {"changed": changed, "errors": errors}, 400 if errors else 200)


def field_errors(refusal: Refusal, default: str) -> dict[str, str]:
    """What is wrong, at the field that it is wrong in."""
    path = str(refusal.detail.get("path", default))
    if refusal.code == "already_exists":
        return {path: TAKEN}
    return {path: FIELDS.get(path, sentence(refusal.message))}

"""A strict reader of the pages: what a browser would quietly mend is an error here (HTML, WCAG 2.2)."""

from html.parser import HTMLParser

VOID = frozenset({"meta", "link", "input", "br", "img", "hr"})
BLOCKS = frozenset(
    {"div", "p", "form", "fieldset", "ul", "dl", "section", "article", "h1", "h2", "h3", "blockquote"}
)
"""What no <p> may hold: browsers end the <p> before it."""
FORBIDDEN = frozenset({"script", "style", "iframe", "object", "embed", "base", "img", "font"})

NAMING = ("aria-describedby", "aria-labelledby", "for")
"""Attributes that name other elements."""
LEADING = ("href", "src", "action", "formaction", "content")
"""Attributes whose value is an address, or holds one."""


class Element:
    """One element: its attributes, the text in it, and what it is in."""

    def __init__(self, tag: str, attributes: dict[str, str], parent: "Element | None") -> None:
        self.tag = tag
        self.attributes = attributes
        self.parent = parent
        self.text = ""

    def inside(self, tag: str) -> "Element | None":
        """The nearest element of this tag around it."""
        found = self.parent
        while found is not None and found.tag != tag:
            found = found.parent
        return found


class Document(HTMLParser):
    """A page, read; `faults` is what is wrong with it."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[Element] = []
        self.faults: list[str] = []
        self._open: list[Element] = []
        if not text.startswith("<!doctype html>\n"):
            self.faults.append("no doctype")
        self.feed(text)
        self.close()
        self.faults += [f"<{each.tag}> is never closed" for each in self._open]
        self._look()

    @property
    def text(self) -> str:
        """All that is written on the page, and not its markup."""
        return " ".join(each.text for each in self.elements)

    def all(self, *tags: str) -> list[Element]:
        """The elements of these tags, in order."""
        return [each for each in self.elements if each.tag in tags]

    def one(self, id: str) -> Element:
        """The element with an id."""
        return next(each for each in self.elements if each.attributes.get("id") == id)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        if len(set(names)) < len(names):
            self.faults.append(f"<{tag}> has an attribute twice: {names}")
        parent = self._open[-1] if self._open else None
        element = Element(tag, {name: value if value is not None else "" for name, value in attrs}, parent)
        self.elements.append(element)
        if tag in BLOCKS and any(each.tag == "p" for each in self._open):
            self.faults.append(f"<{tag}> in a <p>")
        if tag not in VOID:
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open[-1].tag != tag:
            self.faults.append(f"</{tag}> closes {self._open[-1].tag if self._open else 'nothing'}")
            return
        self._open.pop()

    def handle_data(self, data: str) -> None:
        for each in self._open:
            each.text += data

    def handle_decl(self, decl: str) -> None:
        if decl != "doctype html":
            self.faults.append(f"<!{decl}>")

    def handle_comment(self, data: str) -> None:
        self.faults.append(f"a comment: {data[:50]}")

    def unknown_decl(self, data: str) -> None:
        self.faults.append(f"<![{data[:50]}")

    def handle_pi(self, data: str) -> None:
        self.faults.append(f"<?{data[:50]}")

    def _look(self) -> None:
        self._look_at_frame()
        self._look_at_ids()
        self._look_at_fields()
        for each in self.elements:
            if each.tag in FORBIDDEN:
                self.faults.append(f"<{each.tag}>")
            for name, value in each.attributes.items():
                runs = name in LEADING and "javascript:" in value.lower()
                if name.startswith("on") or name == "style" or runs:
                    self.faults.append(f"<{each.tag} {name}>")

    def _look_at_frame(self) -> None:
        for tag in ("html", "head", "title", "body", "main", "h1", "header"):
            found = [
                each for each in self.all(tag) if each.inside("svg") is None
            ]  # a picture has a title, too
            if len(found) != 1:
                self.faults.append(f"{len(found)} <{tag}>")
        if any(
            not each.text.strip()
            for each in self.all("title", "h1", "h2", "h3", "label", "legend", "button", "a")
        ):
            self.faults.append("something that should say something is empty")
        if self.all("html") and not self.all("html")[0].attributes.get("lang"):
            self.faults.append("no language")
        level = 0
        for each in self.all("h1", "h2", "h3", "h4"):
            if int(each.tag[1]) > level + 1:
                self.faults.append(f"<{each.tag}> after a heading of level {level}")
            level = int(each.tag[1])
        if any(not each.attributes.get("aria-label") for each in self.all("nav")):
            self.faults.append("a <nav> without a name")

    def _look_at_ids(self) -> None:
        ids = [each.attributes["id"] for each in self.elements if "id" in each.attributes]
        self.faults += [f"id {id} twice" for id in sorted({id for id in ids if ids.count(id) > 1})]
        for each in self.elements:
            meant = " ".join(each.attributes.get(name, "") for name in NAMING).split()
            href = each.attributes.get("href", "")
            meant += [href[1:]] if href.startswith("#") else []
            self.faults += [f"<{each.tag}> names no id: {id}" for id in meant if id and id not in ids]

    def _look_at_fields(self) -> None:
        labelled = {each.attributes.get("for") for each in self.all("label")}
        for each in self.all("input", "select", "textarea"):
            hidden = each.attributes.get("type") == "hidden" or "hidden" in each.attributes
            if not hidden and each.attributes.get("id") not in labelled:
                self.faults.append(f"a field without a label: {each.attributes}")
            if each.attributes.get("type") in ("radio",) and each.inside("fieldset") is None:
                self.faults.append("a choice outside of a fieldset")
            if each.attributes.get("aria-invalid") and "aria-describedby" not in each.attributes:
                self.faults.append("a wrong field whose error is not tied to it")
        for each in self.all("fieldset"):
            if not any(legend.parent is each for legend in self.all("legend")):
                self.faults.append("a fieldset without a legend")
        for each in self.all("form"):
            tokens = [
                field
                for field in self.all("input")
                if field.inside("form") is each and field.attributes.get("name") == "token"
            ]
            if len(tokens) != (each.attributes.get("method") == "post"):
                self.faults.append(f"a form with {len(tokens)} tokens: {each.attributes}")

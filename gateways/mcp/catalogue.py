"""What a surface offers at one moment: its lists in pages, and its tools by every name that they answer to."""

from collections.abc import Callable, Mapping

import msgspec

from gateways.mcp.headers import Mirror, mirrors
from gateways.mcp.listing import Pages, portable
from gateways.mcp.surface import Surface, ToolOffer


class Catalogue(msgspec.Struct, frozen=True, kw_only=True):
    """Printed from a surface; it changes with the surface's lists. `mirrors`: the arguments that headers repeat."""

    pages: Mapping[str, Pages]
    tools: Mapping[str, ToolOffer]
    mirrors: Mapping[str, tuple[Mirror, ...]]

    @classmethod
    def of(cls, surface: Surface, shown: Callable[[str], str]) -> "Catalogue":
        """`shown`: the name under which a tool is listed; it is called by either spelling."""
        offers = {**{portable(name): offer for name, offer in surface.tools.items()}, **surface.tools}
        listed = [{**offer.descriptor, "name": shown(name)} for name, offer in surface.tools.items()]
        mirrored = {name: mirrors(offer.descriptor["inputSchema"]) for name, offer in offers.items()}
        return cls(
            pages={
                "tools/list": Pages("tools", listed),
                "resources/list": Pages("resources", surface.resources),
                "resources/templates/list": Pages("resourceTemplates", surface.templates),
                "prompts/list": Pages("prompts", [offer.descriptor for offer in surface.prompts.values()]),
            },
            tools=offers,
            mirrors={name: found for name, found in mirrored.items() if found},
        )

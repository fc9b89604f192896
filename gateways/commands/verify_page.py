"""The page that verifies transcripts in a browser, printed to a file."""

import click

from gateways.verifying.page import verify_page as page


@click.command("verify-page")
def verify_page() -> None:
    """Print the page that verifies transcripts in a browser, as one HTML file. Needs no broker.

    A broker serves the same page at /verify. It works from a file too, and asks nobody for anything.

    \b
    Example:
      turret verify-page > verify.html
    """
    click.echo(page().html, nl=False)

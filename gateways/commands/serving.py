"""`turret serve` and `turret demo`: what needs the server extra, imported when it is run and not before."""

from pathlib import Path
from typing import Any, Final

import click

from gateways.commands.common import USAGE, Failure

SERVER_LIBRARIES: Final = frozenset(
    (
        *("argon2", "h11", "joserfc", "prometheus_client", "quart", "quart_trio", "structlog"),
        *("jinja2", "werkzeug"),  # Quart brings them along, and we import them by name
    )
)
"""What the server extra adds, by the names under which it is imported."""


@click.command()
@click.option("--data", metavar="DIR", help="The directory of the store and the wire's key.")
@click.option("--bind", metavar="HOST:PORT", help="The public port; 0 lets the kernel choose.")
@click.option("--dealing-bind", metavar="HOST:PORT", help="The dealing port for fast bots.")
@click.option("--operator-bind", metavar="HOST:PORT", help="The operators' port.")
@click.option(
    "--operator-token-file",
    metavar="FILE",
    help="Its token, or TURRET_OPERATOR_TOKEN has it; without one it is closed.",
)
@click.option("--operator-url", metavar="URL", help="Where operators find it.")
@click.option(
    "--config", type=click.Path(path_type=Path, dir_okay=False), envvar="TURRET_CONFIG", help="A TOML file."
)
@click.option("--tls-cert", metavar="FILE", help="The certificate chain (PEM).")
@click.option("--tls-key", metavar="FILE", help="Its private key (PEM).")
@click.option(
    "--behind-proxy", metavar="ADDR", multiple=True, help="A proxy whose X-Forwarded-For is believed."
)
@click.option("--public-url", metavar="URL", help="Where clients find the public port.")
@click.option("--dealing-url", metavar="URL", help="Where clients find the dealing port.")
@click.option("--transcripts", type=click.Choice(["open", "parties"]), help="Who may read a transcript.")
@click.option(
    "--unsafe-limits", is_flag=True, default=None, help="For load tests in bench/: limits do not bind."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON line when ready.")
@click.pass_context
def serve(context: click.Context, /, config: Path | None, as_json: bool, **flags: Any) -> None:
    """Keep a broker running until SIGTERM or Ctrl-C.

    Settings come from --config, the environment (TURRET_…) and these options, in that order of rising weight. A
    bind that others can reach needs TLS or a named proxy, and a chosen transcript mode.

    \b
    Example:
      turret serve --data ./data --bind 127.0.0.1:8766
    """
    try:
        from gateways.serve import run_serve
    except ModuleNotFoundError as missing:
        raise without_server(missing) from None
    as_json = as_json or bool((context.find_object(dict) or {}).get("json"))
    context.exit(run_serve(config, flags, as_json=as_json))


@click.command()
@click.option(
    "--keep", metavar="DIR", type=click.Path(path_type=Path, file_okay=False), help="Keep all files."
)
@click.option("--seed", type=int, help="The market's seed; the same seed gives the same deal.")
@click.pass_context
def demo(context: click.Context, /, keep: Path | None, seed: int | None) -> None:
    """Two desks, one deal: a broker and two bots as processes, a conversation, its proof.

    \b
    Example:
      turret demo --seed 7
    """
    try:
        import quart_trio  # noqa: F401  # the broker that it starts needs it: say so before anything is started
    except ModuleNotFoundError as missing:
        raise without_server(missing) from None
    from gateways.demo.show import run_demo

    context.exit(run_demo(keep, seed))


def without_server(missing: ModuleNotFoundError) -> Exception:
    """The one line for a base install; any other missing module is a fault and stays one."""
    if (missing.name or "").partition(".")[0] not in SERVER_LIBRARIES:
        return missing
    return Failure("not_installed", "this needs the server: pip install 'turret[server]'", USAGE)

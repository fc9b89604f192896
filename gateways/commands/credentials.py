"""The token with which a tool is called: from a file, or got by an agent's own key. Never from the command line, where
every program on the machine could read it.

1. `--token-file FILE` (or TURRET_TOKEN_FILE) has one line, an access token; `-` reads it from standard input.
2. `--agent AGENT_ID` with `--key FILE` asks the broker's authorization server for one (private_key_jwt), once a run.
   Where a tool needs one, the agent's id is known from FILE.agent, too.
3. A token is shown to an address without TLS on this machine alone, and no message holds it.
"""

import os
import re
import stat
import sys
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import click
import msgspec

from broker.wire.ids import AGENT
from gateways.client.clockwork import WireClock
from gateways.client.mcp_link import http_client
from gateways.client.registration import identity_path, load_identity
from gateways.client.token import Tokens
from gateways.commands.common import USAGE, Failure, Options
from gateways.http_client import is_here
from gateways.keyfile import load_key

LONGEST: Final = 8192
_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*")


class Credentials(msgspec.Struct, frozen=True):
    """Where a token comes from; neither: there is none."""

    token_file: str | None = None
    agent: str | None = None

    @property
    def given(self) -> bool:
        """Whether a token is to be shown."""
        return self.token_file is not None or self.agent is not None


def credential_options() -> list[click.Option]:
    """--token-file and --agent, for a command that calls a tool."""
    return [
        click.Option(
            ["--token-file"],
            metavar="FILE",
            envvar="TURRET_TOKEN_FILE",
            help="A file with an access token; - for stdin. Env TURRET_TOKEN_FILE.",
        ),
        click.Option(
            ["--agent"],
            metavar="AGENT_ID",
            envvar="TURRET_AGENT",
            help="Act as this agent, by a token that --key gets. Env TURRET_AGENT. [as the key's .agent file says]",
        ),
    ]


def take_credentials(values: dict[str, Any]) -> Credentials:
    """The values of those options, taken out of a command's. A file named here stands before an agent's key of the
    environment, and the reverse; both named here is a usage error."""
    token_file, agent = values.pop("token_file", None), values.pop("agent", None)
    if token_file is not None and agent is not None:
        source = click.get_current_context().get_parameter_source
        typed = {
            name for name in ("token_file", "agent") if source(name) is click.core.ParameterSource.COMMANDLINE
        }
        if len(typed) != 1:
            raise click.UsageError("--token-file or --agent, not both")
        token_file, agent = (token_file, None) if "token_file" in typed else (None, agent)
    if agent is not None and not AGENT.fullmatch(agent):
        raise click.UsageError("an agent's id is ag_ and 26 characters")
    return Credentials(token_file, agent)


def of_the_key(options: Options) -> Credentials:
    """The agent of --key, as the file says that `turret agent-register` left beside it; else none."""
    if options.key is None:
        return Credentials()
    found = load_identity(identity_path(options.key), load_key(options.key).pk)
    return Credentials(None, found.agent_id if found is not None else None)


async def fetch_token(options: Options, credentials: Credentials, scope: str | None) -> str | None:
    """The token to call with; None: none. By a key it has the scope that the tool needs, or all where it needs none.

    Raises Failure, KeyFileError, OSError, and what the authorization server's answer comes to (client.token).
    """
    if not credentials.given:
        return None
    check_way(options.url)
    if credentials.token_file is not None:
        return read_token(credentials.token_file)
    assert credentials.agent is not None  # one of the two is given
    key = load_key(options.key_path())
    async with http_client(options.url) as http:
        scopes = None if scope is None else (scope,)
        return (await Tokens(options.url, key, credentials.agent, WireClock(), http, scopes).get()).text


def check_way(url: str) -> None:
    """A token may go to this URL: in TLS, or on this machine. Raises Failure."""
    parts = urlsplit(url)
    if parts.scheme in ("http", "ws") and not is_here(url):
        raise Failure("no_tls", f"a token is not sent to {parts.netloc} without TLS: use https", USAGE)


def read_token(file: str) -> str:
    """The token in a file that not everybody can read, or on standard input (-). Raises Failure, OSError."""
    if file == "-":
        text = sys.stdin.read(LONGEST + 1)
    else:
        with Path(file).open("rb") as opened:
            mode = stat.S_IMODE(os.fstat(opened.fileno()).st_mode)
            text = opened.read(LONGEST + 1).decode("ascii", "replace")
        if os.name == "posix" and mode & 0o007:
            raise Failure(
                "token_file", f"{file} can be read by everybody (mode {mode:04o}): chmod o-rwx {file}", USAGE
            )
    token = text.strip()
    if not _TOKEN.fullmatch(token) or len(text) > LONGEST:
        raise Failure("token_file", f"{file}: expected one line, a token", USAGE)
    return token

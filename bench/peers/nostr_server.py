"""The peer "nostr": nostr-relay, a Nostr relay in Python, with the settings that come with it.

`python -m bench.peers.nostr_server DATA`. It verifies NIP-01's events (secp256k1, Schnorr), writes them to SQLite and
hands them to subscriptions. Set otherwise than it comes: synchronous FULL in place of NORMAL, since an acknowledgement
must be durable here; no log; one write under way at a time (SQLite has one writer: 2 and 4 were measured, and slower).
"""

import asyncio
import sys
from pathlib import Path
from typing import Any

import sqlalchemy
import yaml
from nostr_relay.config import Config
from nostr_relay.storage import get_metadata
from nostr_relay.web import create_app
from sqlalchemy.engine.base import Engine
from sqlalchemy.ext.asyncio import create_async_engine

from bench.peers.listening import run_uvicorn
from bench.peers.nostr_side import FILE


def configure(data: Path) -> Path:
    """Write the relay's configuration file."""
    file = data / "nostr.yaml"
    settings = {
        "storage": {
            "sqlalchemy.url": f"sqlite+aiosqlite:///{data / FILE}",
            "num_concurrent_reqs": 10,
            "num_concurrent_adds": 1,
            "validators": [
                f"nostr_relay.validators.{name}"
                for name in ("is_not_too_large", "is_signed", "is_recent", "is_not_hellthread")
            ],
        },
        "authentication": {"enabled": False},
        "hellthread_limit": 100,
        "logging": {"version": 1, "root": {"level": "ERROR"}},
    }
    file.write_text(yaml.safe_dump(settings))
    return file


def durable(connection: Any, record: Any) -> None:
    """Set synchronous FULL on each connection, after the relay has set NORMAL."""
    cursor = connection.cursor()
    cursor.execute("PRAGMA synchronous = full")
    cursor.close()


async def create_tables(data: Path) -> None:
    """The tables and indexes of the relay, in a new file."""
    engine = create_async_engine(f"sqlite+aiosqlite:///{data / FILE}")
    async with engine.begin() as connection:
        await connection.run_sync(get_metadata().create_all)
    await engine.dispose()


def main(data: Path) -> None:
    """Serve until a signal says stop."""
    Config.load(str(configure(data)))
    asyncio.run(create_tables(data))
    app = create_app()
    sqlalchemy.event.listen(Engine, "connect", durable)
    run_uvicorn(app, ws_per_message_deflate=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""The log: one line a record, JSON or text, with the id of the request at hand and without secrets.

1. The code logs by the standard library; structlog gives every record, a library's too, one form. So the broker knows
   nothing of how its log looks.
2. Nothing that somebody wrote leaves its place: line ends, terminal escapes, marks that turn text around are written as
   escapes. A record is one line, whatever is in it.
3. The hot path logs nothing: what happens a thousand times a second is a figure (gateways.metrics).
"""

import json
import logging
import sys
from typing import Any, Final, TextIO

import structlog
from structlog.typing import EventDict, WrappedLogger

from broker.config import Log
from gateways import requestid
from gateways.redaction import redact

OURS: Final = ("turret", "broker", "gateways")
"""Our loggers; what libraries say is heard from WARNING on."""
LONGEST: Final = 16_384
"""Characters of a text in a record; a traceback is shorter."""


def configure(settings: Log, stream: TextIO | None = None) -> None:
    """Have all records written to `stream` (standard error) from now on, and to nowhere else."""
    stream = stream if stream is not None else sys.stderr
    form = settings.format or ("text" if stream.isatty() else "json")
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter(form))
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    for name in OURS:
        logging.getLogger(name).setLevel(settings.level.upper())


def formatter(form: str) -> logging.Formatter:
    """Makes a line of a record; `form` is json or text."""
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[
            structlog.stdlib.add_log_level,
            structlog.stdlib.add_logger_name,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            add_request_id,
        ],
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            without_secrets,
            as_json if form == "json" else as_text,
        ],
    )


def add_request_id(_: WrappedLogger, __: str, record: EventDict) -> EventDict:
    """Name the request at hand, if there is one."""
    request_id = requestid.current()
    if request_id:
        record["request_id"] = request_id
    return record


def without_secrets(_: WrappedLogger, __: str, record: EventDict) -> EventDict:
    """Take out what must not be read, and cut what is too long."""
    shown: EventDict = redact(record)
    for name, value in shown.items():
        if isinstance(value, str) and len(value) > LONGEST:
            shown[name] = f"{value[:LONGEST]}…"
    return shown


def as_json(_: WrappedLogger, __: str, record: EventDict) -> str:
    """One line of JSON in ASCII, the usual members first."""
    first = {name: record.pop(name) for name in ("timestamp", "level", "logger", "event") if name in record}
    return json.dumps({**first, **record}, ensure_ascii=True, default=repr)


def as_text(_: WrappedLogger, __: str, record: EventDict) -> str:
    """One line for a person: time, level, logger, members, and last what was said."""
    time, level, name = (str(record.pop(part, "")) for part in ("timestamp", "level", "logger"))
    event, exception = str(record.pop("event", "")), record.pop("exception", None)
    members = "".join(f" {name}={plain(str(value))!r}" for name, value in record.items())
    end = f" | {plain(exception)}" if exception else ""
    return f"{time} {level:<7} {plain(name)}{members}: {plain(event)}{end}"


def plain(text: Any) -> str:
    """The text with everything that is no visible character written as an escape."""
    return "".join(each if each.isprintable() else _escape(each) for each in str(text))


def _escape(character: str) -> str:
    code = ord(character)
    short = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(character)
    return short or (
        f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65_536 else f"\\U{code:08x}"
    )

"""Settings from a TOML file, the environment and the command line, in that order of rising weight.

1. An unknown key is an error that names it and what it may have meant: a mistyped limit must not go unnoticed.
2. The environment's names are TURRET_<SECTION>_<FIELD> (TURRET_LIMITS_RINGS) and TURRET_<OPTION> (TURRET_BIND).
3. A value outside its bounds (broker.config), or at odds with another, is an error: none is quietly made to fit.
4. A bind that others can reach needs TLS or a named proxy, and a chosen transcript mode (wire.md, transcripts).
5. Limits are raised for a bench on loopback alone, whatever asks for it.
"""

import difflib
import ipaddress
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

import msgspec
from msgspec.structs import replace

from broker.config import Settings, raise_arena, raise_limits

PREFIX: Final = "TURRET_"
TOP: Final = ("transcripts", "unsafe_limits")
"""Settings that stand in no section."""
CLIENT_NAMES: Final = frozenset(
    f"TURRET_{name}" for name in ("URL", "KEY", "WIRE", "JSON", "CONFIG", "AGENT", "TOKEN_FILE")
)
"""Names of the environment that are the client commands' own."""
OPERATOR: Final = "TURRET_OPERATOR_TOKEN"
"""The operators' token in the environment: a secret, and so no setting, which may be shown."""
BENCH: Final = "TURRET_BENCH"
"""Set to 1 by a bench for the broker that it starts; no setting."""


class ConfigError(Exception):
    """A setting that can't be used; the message is one line for a person."""


class ServeOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Where a broker lives and listens (`[serve]` in the file)."""

    data: str = "turret-data"
    """The directory of the store and the wire's key."""
    bind: str = "127.0.0.1:8766"
    """The public port, host:port; port 0 lets the kernel choose."""
    dealing_bind: str = "127.0.0.1:8767"
    """The dealing port for fast bots, host:port."""
    operator_bind: str = "127.0.0.1:8768"
    """The operators' port, host:port; it is opened where there is a token for it."""
    operator_token_file: str | None = None
    """The file with the operators' token (turret operator-token makes one); or the token itself in
    TURRET_OPERATOR_TOKEN, in the environment alone."""
    operator_url: str | None = None
    """Where operators find their port, http(s)://host[:port]; unset: the address to which it is bound."""
    metrics_bind: str | None = None
    """An address of its own for /metrics, /healthz and /readyz, host:port, without TLS: whoever reaches it reads them.
    Unset: the public port shows /metrics to this machine alone."""
    tls_cert: str | None = None
    """A PEM file with the certificate chain."""
    tls_key: str | None = None
    """A PEM file with its private key."""
    secrets_key_file: str | None = None
    """The file with the keys that secrets are sealed with, which must be there; unset: secrets.key in the data
    directory, made at the first start."""
    behind_proxy: tuple[str, ...] = ()
    """Addresses or networks of proxies whose X-Forwarded-For is believed."""
    public_url: str | None = None
    """Where clients find the public port, https://host[:port]."""
    dealing_url: str | None = None
    """Where clients find the dealing port, wss://host[:port]; unset: the address to which it is bound."""
    allowed_origins: tuple[str, ...] = ()
    """Origins of web pages that may call, beside the broker's own."""
    issuer: str | None = None
    """An outside authorization server whose tokens are taken, https://…; unset: the broker's own."""
    issuer_client: str | None = None
    """The client id as which the broker asks that issuer about each token (RFC 7662); unset: its keys verify them."""
    issuer_secret_file: str | None = None
    """The file with that client's secret."""


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """All that `turret serve` needs to know."""

    serve: ServeOptions = ServeOptions()
    settings: Settings = Settings()
    transcripts_chosen: bool = False
    """Whether `transcripts` was set anywhere, or is the default."""


def load(
    file: Path | None, environment: Mapping[str, str], flags: Mapping[str, Any] | None = None
) -> Configuration:
    """Read a configuration. `flags`: ServeOptions fields, `transcripts` and `unsafe_limits`; None: not given.

    Raises ConfigError with one line: the file can't be read, a key is unknown, a value is of the wrong kind.
    """
    tree = _from_file(file) if file is not None else {}
    _merge(tree, _from_environment(environment))
    for name, value in (flags or {}).items():
        if value is not None and value != ():
            if name in TOP:
                tree[name] = value
            else:
                tree.setdefault("serve", {})[name] = value
    chosen = "transcripts" in tree
    serve = tree.pop("serve", {})
    _known(tree, Settings, "")
    _known(serve, ServeOptions, "serve")
    try:
        configuration = Configuration(
            serve=msgspec.convert(serve, ServeOptions, strict=False),
            settings=msgspec.convert(tree, Settings, strict=False),
            transcripts_chosen=chosen,
        )
    except msgspec.ValidationError as error:
        raise ConfigError(_in_words(error)) from None
    check(configuration)
    configuration = _with_sign_up(configuration)
    if not configuration.settings.unsafe_limits:
        return configuration
    check_unsafe(configuration.serve, environment)
    settings = configuration.settings
    limits, arena = raise_limits(settings.limits), raise_arena(settings.arena)
    return replace(configuration, settings=replace(settings, limits=limits, arena=arena))


def _with_sign_up(configuration: Configuration) -> Configuration:
    """Where nothing is said of it, anybody may become an owner if nobody but this machine can ask."""
    serve, settings = configuration.serve, configuration.settings
    if settings.owners.sign_up is not None:
        return configuration
    alone = is_loopback(split_bind(serve.bind)[0]) and serve.public_url is None
    owners = replace(settings.owners, sign_up="open" if alone else "invitation")
    return replace(configuration, settings=replace(settings, owners=owners))


def _in_words(error: msgspec.ValidationError) -> str:
    """msgspec's `Expected … - at `$.limits.rings`` with the setting first."""
    found = re.fullmatch(r"(.*) - at `\$\.?(.*)`", str(error), re.DOTALL)
    return f"{found[2]}: {found[1][:1].lower()}{found[1][1:]}" if found else str(error)


def check(configuration: Configuration) -> None:
    """Refuse what would be open by mistake, or can't work. Raises ConfigError with the line that says how."""
    check_urls(configuration.serve)
    check_settings(configuration.settings)
    serve = configuration.serve
    if (serve.tls_cert is None) != (serve.tls_key is None):
        raise ConfigError("--tls-cert and --tls-key go together")
    if serve.metrics_bind is not None:
        split_bind(serve.metrics_bind)
    for bind in (serve.bind, serve.dealing_bind):
        host, _ = split_bind(bind)
        if is_loopback(host):
            continue
        if serve.tls_cert is None and not (serve.behind_proxy and serve.public_url):
            raise ConfigError(
                f"{bind} can be reached from outside: give --tls-cert and --tls-key, or --behind-proxy ADDR "
                "with --public-url https://…"
            )
        if not configuration.transcripts_chosen:
            raise ConfigError(
                f"{bind} can be reached from outside: choose --transcripts parties (only the parties read a "
                "transcript) or --transcripts open (whoever has a conversation's id reads it)"
            )
    if not is_loopback(split_bind(serve.operator_bind)[0]) and not (serve.tls_cert or serve.behind_proxy):
        raise ConfigError(
            f"{serve.operator_bind} can be reached from outside, and the operators' token would go there in the clear: "
            "give --tls-cert and --tls-key, or --behind-proxy ADDR"
        )


def check_unsafe(serve: ServeOptions, environment: Mapping[str, str]) -> None:
    """Raised limits are for a bench's own broker, which nobody else can reach. Raises ConfigError."""
    if environment.get(BENCH) != "1":
        raise ConfigError(
            f"--unsafe-limits is for the load tests in bench/, which set {BENCH}=1: a broker in use keeps its limits"
        )
    reachable = serve.behind_proxy or serve.public_url or serve.dealing_url
    binds = (serve.bind, serve.dealing_bind, serve.operator_bind)
    if reachable or not all(is_loopback(split_bind(bind)[0]) for bind in binds):
        raise ConfigError(
            "--unsafe-limits needs every bind on loopback, and no proxy or URL of others: without limits anyone "
            "who reaches the broker could exhaust it"
        )


def check_urls(serve: ServeOptions) -> None:
    """The addresses that clients are told, and the origins that they are compared with. Raises ConfigError."""
    for name, url, schemes in (
        ("public_url", serve.public_url, ("https", "http")),
        ("dealing_url", serve.dealing_url, ("wss", "ws")),
        ("operator_url", serve.operator_url, ("https", "http")),
    ):
        parts = _split_url(url) if url is not None else None
        if url is not None and (
            parts is None or parts.scheme not in schemes or parts.query or parts.fragment
        ):
            raise ConfigError(f"serve.{name}: {url!r} is no {schemes[0]}://host[:port]")
    check_issuer(serve)
    for origin in serve.allowed_origins:
        parts = _split_url(origin)
        if (
            parts is None
            or origin != f"{parts.scheme}://{parts.netloc}"
            or parts.scheme not in ("https", "http")
        ):
            raise ConfigError(f"serve.allowed_origins: {origin!r} is no origin, such as https://desk.example")


def check_issuer(serve: ServeOptions) -> None:
    """An issuer comes with what it needs; tokens and secrets travel in TLS or stay here. Raises ConfigError."""
    asking = (serve.issuer_client, serve.issuer_secret_file)
    if serve.issuer is None and not any(asking):
        return
    if serve.issuer is None or any(asking) != all(asking):
        raise ConfigError(
            "serve.issuer_client and serve.issuer_secret_file go together, and with serve.issuer"
        )
    parts = _split_url(serve.issuer or "")
    if parts is None or parts.scheme not in ("https", "http") or parts.query or parts.fragment:
        raise ConfigError(f"serve.issuer: {serve.issuer!r} is no https://host[:port][/path]")
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        raise ConfigError("serve.issuer must be https:// where it is not on this machine")
    if serve.public_url is None and not is_loopback(split_bind(serve.bind)[0]):
        raise ConfigError("serve.issuer needs --public-url: tokens are made for the URL that clients use")


def _split_url(url: str) -> SplitResult | None:
    """A URL with a scheme and a host and without a user; None for what is none, or has blanks in it."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    clean = url.isascii() and url.isprintable() and " " not in url and "@" not in parts.netloc
    return parts if clean and parts.hostname and port != 0 else None


def check_settings(settings: Settings) -> None:
    """Bounds that settings set each other. Raises ConfigError."""
    limits, streams = settings.limits, settings.streams
    if limits.rings_known >= limits.rings:
        raise ConfigError(
            f"limits.rings_known ({limits.rings_known}) must be less than limits.rings ({limits.rings}): "
            "else no stranger could ring"
        )
    if streams.ping_s >= streams.dead_s:
        raise ConfigError(
            f"streams.ping_s ({streams.ping_s:g}) must be less than streams.dead_s ({streams.dead_s:g}): "
            "else every idle peer would be cut"
        )


def split_bind(bind: str) -> tuple[str, int]:
    """Host and port of `host:port` or `[v6]:port`. Raises ConfigError."""
    host, colon, port = bind.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not re.fullmatch("[0-9]{1,5}", port) or int(port) > 65535:
        raise ConfigError(f"{bind!r} is not host:port, such as 127.0.0.1:8766")
    return host, int(port)


def is_loopback(host: str) -> bool:
    """Whether a host to bind to can be reached from this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _from_file(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:  # no TOML, no UTF-8, a number or a nesting beyond any sense
        raise ConfigError(f"{file}: {error}") from None


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    """TURRET_* as a tree; lists are comma-separated. An unknown name is an error, as in the file."""
    tree: dict[str, Any] = {}
    places = _places()
    for name, text in environment.items():
        if not name.startswith(PREFIX) or name in CLIENT_NAMES or name in (BENCH, OPERATOR):
            continue
        place = places.get(name)
        if place is None:
            raise ConfigError(f"{name} is no setting{_meant(name, places)}")
        if not _is_text(text):
            raise ConfigError(f"{name} is not text in UTF-8")
        section, field, many = place
        value: Any = [part.strip() for part in text.split(",") if part.strip()] if many else text
        (tree.setdefault(section, {}) if section else tree)[field] = value
    return tree


def _is_text(value: str) -> bool:
    """Whether a value had nothing but UTF-8: other bytes stand in the environment as lone surrogates."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _places() -> dict[str, tuple[str, str, bool]]:
    """Environment name → section ("" for the top), field, whether it is a list."""
    places = {f"{PREFIX}{name.upper()}": ("", name, False) for name in TOP}
    for field in msgspec.structs.fields(ServeOptions):
        places[f"{PREFIX}{field.name.upper()}"] = ("serve", field.name, _is_list(field.type))
    for section in msgspec.structs.fields(Settings):
        if isinstance(section.type, type) and issubclass(section.type, msgspec.Struct):
            for field in msgspec.structs.fields(section.type):
                name = f"{PREFIX}{section.name.upper()}_{field.name.upper()}"
                places[name] = (section.name, field.name, _is_list(field.type))
    return places


def _is_list(hint: Any) -> bool:
    return str(hint).startswith("tuple")


def _known(tree: Mapping[str, Any], kind: type[msgspec.Struct], where: str) -> None:
    fields = {field.name: field.type for field in msgspec.structs.fields(kind)}
    for name, value in tree.items():
        path = f"{where}.{name}" if where else name
        if name not in fields:
            known = fields if where else [*fields, "serve"]
            raise ConfigError(f"{path} is no setting{_meant(name, known)}")
        inner = fields[name]
        if isinstance(value, Mapping) and isinstance(inner, type) and issubclass(inner, msgspec.Struct):
            _known(value, inner, path)


def _meant(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), 1)
    return f"; did you mean {close[0]}?" if close else ""


def _merge(tree: dict[str, Any], over: Mapping[str, Any]) -> None:
    for name, value in over.items():
        if isinstance(value, Mapping) and isinstance(tree.get(name), dict):
            _merge(tree[name], value)
        else:
            tree[name] = value

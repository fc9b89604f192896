"""What an operator sees: figures, logs, traces, health."""

FIGURES = "gateways/figures.py"
METRICS = "gateways/metrics.py"
MEASURED = "gateways/measured.py"
SOCKETS = "gateways/sockets.py"
CALLER = "gateways/caller.py"
HOUSE = "broker/actors/house.py"
STREAMS = "broker/actors/streams.py"
SQLITE = "broker/store/sqlite.py"

REQUEST_ID = "gateways/requestid.py"
IDENTIFIED = "gateways/identified.py"
SESSION = "gateways/session.py"
RENDER = "gateways/render.py"
LOGS = "gateways/logs.py"
REDACTION = "gateways/redaction.py"

TRANSPORT = "gateways/transport.py"
WELLKNOWN = "gateways/wellknown.py"

NOTIFY = "gateways/notify.py"
SERVE = "gateways/serve.py"
DOORS = "gateways/doors.py"

UNIT = "docs/systemd/turret.service"
IMAGE = "docs/container/Containerfile"
ALERTS = "docs/prometheus/alerts.yml"

OTEL = "gateways/otel.py"
TRACES = "gateways/traces.py"

MUTANTS = (
    ("observe.names", FIGURES, '"turret_store_commit_seconds"', '"turret_store_commit_ms"'),
    ("observe.documented", METRICS, "labels = figure.labels\n", "labels = ()\n"),
    (
        "observe.envelopes",
        MEASURED,
        'self._called(name, "duplicate", seconds)',
        'self._called(name, "ok", seconds)',
    ),
    (
        "observe.envelopes",
        MEASURED,
        "name, began = tool.name, self.admission.since",
        "name, began = tool.name, None",
    ),
    ("observe.sign-ins", MEASURED, "        self._metrics.sign_ins[name, outcome] += 1\n", "        pass\n"),
    ("observe.connections", SOCKETS, "            self._open[door] -= 1\n", "            pass\n"),
    ("observe.local-alone", METRICS, "proxies is not None and not is_local(scope, proxies)", "False"),
    (
        "observe.local-alone",
        CALLER,
        "    return here and _FORWARDING.isdisjoint(headers)",
        "    return here",
    ),
    ("observe.local-alone", CALLER, "    return here and _FORWARDING", "    return _FORWARDING"),
    (
        "observe.local-alone",
        CALLER,
        "not peer.is_loopback or is_proxy(peer, proxies)",
        "not peer.is_loopback",
    ),
    (
        "observe.actors-apart",
        HOUSE,
        "start = contextvars.Context().run",
        "start = contextvars.copy_context().run",
    ),
    ("observe.mailboxes", HOUSE, "                self.turned_away += 1\n", ""),
    ("observe.resumes", STREAMS, "over=over, counted=False)", "over=over)"),
    ("observe.store", SQLITE, "        self._units.add(len(batch))\n", "        self._units.add(1)\n"),
    (
        "observe.request-ids",
        IDENTIFIED,
        "if peer is None or not is_proxy(peer, proxies):",
        "if peer is None:",
    ),
    ("observe.request-ids", IDENTIFIED, "_FORM.fullmatch(values[0])", "_FORM.match(values[0])"),
    ("observe.request-ids", REQUEST_ID, "        _request.reset(before)\n", "        pass\n"),
    ("observe.request-ids", SESSION, "        requestid.bind(self._request)\n", ""),
    (
        "observe.request-ids",
        RENDER,
        "if request_id else secrets.token_hex(8)",
        "if False else secrets.token_hex(8)",
    ),
    ("observe.logs", LOGS, "ensure_ascii=True", "ensure_ascii=False"),
    ("observe.logs", LOGS, "each if each.isprintable() else _escape(each)", "each"),
    ("observe.logs", LOGS, "    root.setLevel(logging.WARNING)\n", "    root.setLevel(logging.DEBUG)\n"),
    ("observe.no-secrets", LOGS, "            without_secrets,\n", ""),
    (
        "observe.no-secrets",
        REDACTION,
        "SHOWN if is_secret(str(name)) else redact(each, depth + 1)",
        "redact(each, depth + 1)",
    ),
    (
        "observe.operators",
        MEASURED,
        "{*broker.tools, *broker.operator_tools}",
        "{*broker.tools}",
    ),
    ("observe.operators", MEASURED, "bool(result.ok)", "True"),
    ("observe.hsts", TRANSPORT, '(proxied or scope.get("scheme") == "https") and', "True and"),
    ("observe.hsts", TRANSPORT, ' and name.lower().rstrip(".") != "localhost"', ""),
    ("observe.root", WELLKNOWN, '"text/html" in named or', '"*/*" in named or "text/html" in named or'),
    ("observe.service", NOTIFY, "_watchdog_s(environment) / 2", "_watchdog_s(environment) * 2"),
    ("observe.service", SERVE, "            notifier.tell(STOPPING)\n", ""),
    (
        "observe.operators",
        DOORS,
        "operator_app(\n            self._counted,",
        "operator_app(\n            self._broker,",
    ),
    ("observe.deployment", UNIT, "TimeoutStopSec=20", "TimeoutStopSec=5"),
    ("observe.deployment", IMAGE, "USER 10001", "USER 0"),
    ("observe.pages", ALERTS, "expr: turret_ready == 0", "expr: turret_readiness == 0"),
    ("observe.traces", OTEL, "return (found, []) if ours else (none, [Link(bare)])", "return found, []"),
    ("observe.traces", OTEL, "            _PARENT.inject(carried)\n", ""),
    ("observe.traces", OTEL, 'f"/{first}" if first in PLACES else "/"', 'f"/{first}"'),
    ("observe.traces", TRACES, "    if not settings.enabled:\n", "    if False:\n"),
    (
        "observe.health",
        "broker/app.py",
        '            reasons.append("the store takes no writes")\n',
        "            pass\n",
    ),
)

"""What an operator sees: figures, logs, traces, health."""

FIGURES = "gateways/figures.py"
METRICS = "gateways/metrics.py"
MEASURED = "gateways/measured.py"
SOCKETS = "gateways/sockets.py"
CALLER = "gateways/caller.py"
HOUSE = "broker/actors/house.py"
STREAMS = "broker/actors/streams.py"
SQLITE = "broker/store/sqlite.py"

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
        "    return _FORWARDING.isdisjoint(",
        "    return not _FORWARDING or (lambda _: True)(",
    ),
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
)

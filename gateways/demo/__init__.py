"""The demo: a broker and two bots as processes, one deal, its proof. `python -m gateways.demo`."""

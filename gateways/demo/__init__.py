"""The demo: a broker and two bots as processes, one deal, two agents, the proof. `python -m gateways.demo`."""

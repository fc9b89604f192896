"""The dealer's client: connect, dial, answer, verify. Needs the base install alone."""

"""The only loops in the broker: actors, streams and timers."""

"""Durable memory: the port (`port`) and its adapters."""

"""Sans-I/O: the law that store, gateways, client and offline verifier agree on (wire.md)."""

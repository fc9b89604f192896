"""The broker as a protected resource: its documents, its challenges, and tokens judged by their issuer."""

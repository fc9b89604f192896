"""The operators' port: the token, who it lets in, and the application behind it (network.md, Operators' port)."""

"""The owners' pages: HTML made here, plain, for people with or without JavaScript (network.md, Sign-in)."""

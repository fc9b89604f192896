"""Games of the arena: each one pure file (docs/reference/arena.md, Games)."""

"""Plans: a small language of bounded trading plans (docs/reference/plan.md). `read` reads one, `program` runs one."""

"""The mutants, by area: `MUTANTS` is a tuple of (requirement, file, exact old text, new text)."""

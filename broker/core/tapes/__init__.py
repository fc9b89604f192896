"""Tapes: what a trial is run on (docs/reference/trial.md, Tapes)."""

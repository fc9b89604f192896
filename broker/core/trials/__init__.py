"""Trials: a plan run on a tape (docs/reference/trial.md)."""

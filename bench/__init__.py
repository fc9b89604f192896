"""Measurements; README.md names the question that each file answers, and what it found."""

"""Pure decisions: one file an aggregate. Commands in, records or refusals out."""

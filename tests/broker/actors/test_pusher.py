"""The worker that sends pushes."""

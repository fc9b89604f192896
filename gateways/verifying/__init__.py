"""A page that verifies an exported transcript by itself, in a browser: one file, no request to anywhere."""

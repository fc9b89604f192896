"""The operators' console: pages on their port, made by the server, with one live tape."""

"""The commands of `turret`, one file an area; gateways/cli.py puts them together."""

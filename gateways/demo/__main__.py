"""`python -m gateways.demo [--keep DIR] [--seed N]`: the same as `turret demo`."""

import argparse
import sys
from pathlib import Path

from gateways.demo.show import run_demo


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="gateways.demo", description="Two desks, one deal, its proof.")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep all files there")
    parser.add_argument("--seed", type=int, help="the market's seed; the same seed gives the same deal")
    options = parser.parse_args(arguments)
    return run_demo(options.keep, options.seed)


if __name__ == "__main__":
    sys.exit(main())

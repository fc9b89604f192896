"""Programs of the pages as they are printed: `turret` found on the PATH, as after an installation."""

import os
import sys
from pathlib import Path


def turret_on_path(directory: Path, root: Path) -> dict[str, str]:
    """Put a `turret` of this very tree into a folder of `directory`; the environment in which it is found."""
    folder = directory / "bin"
    folder.mkdir(exist_ok=True)
    program = folder / "turret"
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{root}" exec "{sys.executable}" -m gateways.cli "$@"\n')
    program.chmod(0o755)
    return {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}

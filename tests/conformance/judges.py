"""Which judges there are, in which versions, and how they come into a folder outside of the tree.

Node comes out of npm's own package; npm itself must be there. Nothing is installed for the machine.
"""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

NODE: Final = "node@22.23.3"
NEWEST: Final = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
STABLE: Final = "@modelcontextprotocol/conformance@0.1.16"
INSPECTOR: Final = "@modelcontextprotocol/inspector@2.12.0"
CLIENT_V1: Final = "@modelcontextprotocol/sdk@1.32.2"
CLIENT_V2: Final = "@modelcontextprotocol/client@2.4.0"
ISSUER: Final = "oauth2-mock-server@9.3.0"
ALL: Final = (NODE, NEWEST, STABLE, INSPECTOR, CLIENT_V1, CLIENT_V2, ISSUER)
INSTALL_S: Final = 300.0


class Missing(Exception):
    """The judges can't be had; the message is one line for a person."""


def judges_folder() -> Path:
    """Where TURRET_JUDGES says, or in the user's cache."""
    return Path(os.environ.get("TURRET_JUDGES") or Path.home() / ".cache" / "turret-conformance").absolute()


class Judges:
    """The folder that they are in: one sub-folder a package, so that no two share a dependency."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def installed(cls) -> "Judges":
        """Install what is missing. Raises Missing."""
        judges = cls(judges_folder())
        for package in ALL:
            judges._install(package)
        return judges

    def at(self, package: str, *parts: str) -> Path:
        """A path inside an installed package."""
        name = package.rpartition("@")[0]
        return self._place(package) / "node_modules" / name / Path(*parts)

    @property
    def node(self) -> str:
        """The Node that runs them all."""
        return str(self.at(NODE, "bin", "node"))

    def _place(self, package: str) -> Path:
        return self.folder / package.replace("/", "+").lstrip("@")

    def _install(self, package: str) -> None:
        place = self._place(package)
        if (place / "done").exists():
            return
        npm = shutil.which("npm")
        if npm is None:
            raise Missing("npm is needed to fetch the judges (any Node with npm will do)")
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        (place / "package.json").write_text('{"private":true}')
        print(f"installing {package}", flush=True)
        command = [npm, "install", "--no-audit", "--no-fund", "--loglevel=error", package]
        try:
            subprocess.run(command, cwd=place, check=True, timeout=INSTALL_S, stdin=subprocess.DEVNULL)
        except (subprocess.SubprocessError, OSError) as error:
            raise Missing(f"{package} could not be installed: {error}") from None
        (place / "done").touch()

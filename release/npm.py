#!/usr/bin/env python3
"""Makes the npm packages: the client, and one with the program for this platform, which the client names as optional.

    python3 release/npm.py [--binary target/release/seriatim] [--to target/release-files]

Needs npm, and what `npm ci` has installed in `clients/typescript` (or in the folder that `--client` names).
"""

import argparse
import json
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile

import notices

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Which platforms have a package, as Node names them. Those of other machines are made there by this script.
PLATFORMS = ("linux-x64", "linux-arm64", "darwin-arm64", "darwin-x64")
MACHINES = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}


def this_platform():
    """This platform, as Node names it."""
    return f"{sys.platform}-{MACHINES.get(platform.machine().lower(), platform.machine())}"


def version(description):
    """The version, which is that of the program."""
    crate = re.search(r'^version = "(.*)"$', (ROOT / "Cargo.toml").read_text(), re.M).group(1)
    if description["version"] != crate:
        sys.exit(f"clients/typescript/package.json has version {description['version']}, and Cargo.toml has {crate}")
    return crate


def pack(folder, to):
    """Packs a folder; the file."""
    command = ["npm", "pack", "--silent", "--ignore-scripts", "--pack-destination", str(to)]
    packed = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    return to / packed.stdout.strip()


def copy_licences(folder):
    """The licences of this program."""
    for licence in ROOT.glob("LICENSE*"):
        shutil.copy(licence, folder)


def of_client(client, description, to):
    """The package of the client; it is as small as before, and brings the program only where there is one."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        subprocess.run(["node_modules/.bin/tsc", "--outDir", str(folder / "dist")], cwd=client, check=True)
        shutil.copy(client / "README.md", folder)
        copy_licences(folder)
        optional = {f"seriatim-{name}": description["version"] for name in PLATFORMS}
        written = {key: value for key, value in description.items() if key not in ("devDependencies", "scripts")}
        written["optionalDependencies"] = optional
        written["files"] = [*description["files"], "LICENSE*"]
        (folder / "package.json").write_text(json.dumps(written, indent=2) + "\n")
        return pack(folder, to)


def of_platform(binary, description, to):
    """The package of the program."""
    name = this_platform()
    system, machine = name.split("-")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "bin").mkdir()
        shutil.copy(binary, folder / "bin" / "seriatim")
        subprocess.run(["strip", str(folder / "bin" / "seriatim")], check=True)
        copy_licences(folder)
        (folder / "THIRD-PARTY.txt").write_text(notices.document())
        written = {
            "name": f"seriatim-{name}",
            "version": description["version"],
            "description": f"The program seriatim for {system} on {machine}; the package seriatim brings it",
            "license": description["license"],
            "os": [system],
            "cpu": [machine],
            "files": ["bin", "LICENSE*", "THIRD-PARTY.txt"],
        }
        (folder / "package.json").write_text(json.dumps(written, indent=2) + "\n")
        return pack(folder, to)


def main():
    arguments = argparse.ArgumentParser(description="Makes the npm packages.")
    arguments.add_argument("--binary", default=str(ROOT / "target/release/seriatim"), help="the program")
    arguments.add_argument("--client", default=str(ROOT / "clients/typescript"), help="the client, with its compiler")
    arguments.add_argument("--to", default=str(ROOT / "target/release-files"), help="the folder")
    given = arguments.parse_args()
    client, to, binary = pathlib.Path(given.client), pathlib.Path(given.to).resolve(), pathlib.Path(given.binary)
    to.mkdir(parents=True, exist_ok=True)
    if not binary.is_file():
        sys.exit(f"there is no program {binary}: cargo build --release makes it")
    if not (client / "node_modules/.bin/tsc").exists():
        sys.exit(f"there is no compiler in {client}: npm ci installs it")
    description = json.loads((client / "package.json").read_text())
    version(description)
    print(of_client(client, description, to))
    print(of_platform(binary, description, to))


if __name__ == "__main__":
    main()

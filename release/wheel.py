#!/usr/bin/env python3
"""Makes the Python wheel: the client, and the program `seriatim` with it.

    python3 release/wheel.py [--binary target/release/seriatim] [--to target/release-files]

The wheel is tagged by what the program needs: the newest version of glibc among its symbols, and the machine. Without a
program (`--binary none`) it is one for every platform, with the client alone.
"""

import argparse
import base64
import hashlib
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

import notices

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "clients" / "python"
# What the program is called by: it takes the place of the Python that has started it.
LAUNCHER = '''"""Runs the program that is in this package."""

import os
import sys


def main() -> None:
    """Becomes the program."""
    program = os.path.join(os.path.dirname(__file__), "bin", "seriatim")
    os.execv(program, [program, *sys.argv[1:]])
'''


def field(name):
    """A field of the package's description."""
    found = re.search(rf'^{name} = "(.*)"$', (PACKAGE / "pyproject.toml").read_text(), re.M)
    return found.group(1)


def version():
    """The version, which is that of the program."""
    crate = re.search(r'^version = "(.*)"$', (ROOT / "Cargo.toml").read_text(), re.M).group(1)
    if field("version") != crate:
        sys.exit(f"clients/python/pyproject.toml has version {field('version')}, and Cargo.toml has {crate}")
    return crate


def tag(binary):
    """The platform that a program runs on, as wheels name it."""
    if binary is None:
        return "any"
    machine = platform.machine()
    if sys.platform != "linux":
        return f"{sys.platform}_{machine}"
    read = subprocess.run(["readelf", "--version-info", str(binary)], capture_output=True, text=True, check=True)
    versions = [tuple(map(int, found.split("."))) for found in re.findall(r"GLIBC_(2\.\d+)", read.stdout)]
    # A program that is linked statically needs none; 2.17 is the oldest that wheels know.
    major, minor = max(versions, default=(2, 17))
    return f"manylinux_{major}_{max(minor, 17)}_{machine}"


def stripped(binary, folder):
    """The program without symbols."""
    copy = pathlib.Path(folder, "seriatim")
    shutil.copy(binary, copy)
    subprocess.run(["strip", str(copy)], check=True)
    return copy


def contents(program, info, platform_tag):
    """Name, bytes and mode of every file."""
    for path in sorted((PACKAGE / "src").rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts and ".egg-info" not in str(path):
            yield str(path.relative_to(PACKAGE / "src")), path.read_bytes(), 0o644
    if program is not None:
        yield "seriatim/launch.py", LAUNCHER.encode(), 0o644
        yield "seriatim/bin/seriatim", program.read_bytes(), 0o755
        yield f"{info}/entry_points.txt", b"[console_scripts]\nseriatim = seriatim.launch:main\n", 0o644
    metadata = (
        f"Metadata-Version: 2.1\nName: seriatim\nVersion: {version()}\nSummary: {field('description')}\n"
        f"License: MIT OR Apache-2.0\nRequires-Python: {field('requires-python')}\nDescription-Content-Type: text/markdown\n\n"
    )
    yield f"{info}/METADATA", metadata.encode() + (PACKAGE / "README.md").read_bytes(), 0o644
    for licence in sorted(ROOT.glob("LICENSE*")):
        yield f"{info}/licenses/{licence.name}", licence.read_bytes(), 0o644
    if program is not None:
        yield f"{info}/licenses/THIRD-PARTY.txt", notices.document().encode(), 0o644
    is_pure = "true" if program is None else "false"
    wheel = f"Wheel-Version: 1.0\nGenerator: seriatim\nRoot-Is-Purelib: {is_pure}\nTag: py3-none-{platform_tag}\n"
    yield f"{info}/WHEEL", wheel.encode(), 0o644


def write(to, program, platform_tag):
    """Writes the wheel; the same files make the same bytes."""
    info = f"seriatim-{version()}.dist-info"
    path = to / f"seriatim-{version()}-py3-none-{platform_tag}.whl"
    record = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:

        def add(name, data, mode):
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)

        for name, data, mode in contents(program, info, platform_tag):
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(data)}\n")
            add(name, data, mode)
        record.append(f"{info}/RECORD,,\n")
        add(f"{info}/RECORD", "".join(record).encode(), 0o644)
    return path


def main():
    arguments = argparse.ArgumentParser(description="Makes the Python wheel.")
    arguments.add_argument("--binary", default=str(ROOT / "target/release/seriatim"), help="the program, or `none`")
    arguments.add_argument("--to", default=str(ROOT / "target/release-files"), help="the folder")
    given = arguments.parse_args()
    to = pathlib.Path(given.to)
    to.mkdir(parents=True, exist_ok=True)
    binary = None if given.binary == "none" else pathlib.Path(given.binary)
    if binary is not None and not binary.is_file():
        sys.exit(f"there is no program {binary}: cargo build --release makes it")
    with tempfile.TemporaryDirectory() as folder:
        program = None if binary is None else stripped(binary, folder)
        print(write(to, program, tag(program)))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Writes the licences and notices of every crate that is linked into the program: what each asks to be handed on with it.

    python3 release/notices.py --to THIRD-PARTY.txt
"""

import argparse
import pathlib
import re
import sys

import sbom

FILES = re.compile(r"^(licen[cs]e|notice|copying|copyright|unlicense)", re.IGNORECASE)
# Sources may be named so, too.
SOURCES = (".rs", ".c", ".h", ".s", ".asm", ".py", ".pl", ".go", ".sh", ".js", ".toml", ".json")
BEGIN = """The program seriatim is made of the packages below and of the standard library of Rust (Copyright (c) The Rust Project Contributors, MIT
OR Apache-2.0). Each text stands here once, under the packages that it comes with.
"""


def texts():
    """Each text, and the packages that it comes with."""
    known, names = sbom.metadata(), sbom.linked()
    found = {}
    for package in sorted(known["packages"], key=lambda package: (package["name"], package["version"])):
        if (package["name"], package["version"]) in names and package["id"] != known["resolve"]["root"]:
            title = f"{package['name']} {package['version']} ({package['license']})"
            for text in of_package(package):
                found.setdefault(text, []).append(title)
    return found


def of_package(package):
    """The texts of a package: of its own files, and of what others wrote that is in it."""
    folder = pathlib.Path(package["manifest_path"]).parent
    files = [path for path in sorted(folder.rglob("*")) if FILES.match(path.name) and path.suffix.lower() not in SOURCES]
    read = {path.read_text(errors="replace").strip() for path in files if path.is_file()}
    if not read and "Apache-2.0" in package["license"]:
        # Some name their licence and leave its text out; this one needs nothing but its text.
        read = {(sbom.ROOT / "LICENSE-APACHE").read_text().strip()}
    if not read:
        sys.exit(f"{package['name']} has no text of its licence, {package['license']}: look for one, and add it here")
    return sorted(read)


def document():
    """All of it, as one text."""
    line = "-" * 80
    parts = ["\n".join([line, *titles, line, "", text, ""]) for text, titles in texts().items()]
    return "\n".join([BEGIN, *parts])


def main():
    arguments = argparse.ArgumentParser(description="Writes the licences and notices of what the program is made of.")
    arguments.add_argument("--to", required=True, help="the file")
    to = pathlib.Path(arguments.parse_args().to)
    to.write_text(document())
    print(f"made {to}")


if __name__ == "__main__":
    main()

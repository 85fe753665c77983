#!/usr/bin/env python3
"""Writes what the program is made of, as CycloneDX 1.5: every crate that is linked into it, with version, licence and checksum.

    python3 release/sbom.py --to target/release-files/seriatim-0.1.0.cdx.json
"""

import argparse
import json
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent


def metadata():
    """What cargo knows of the package and its dependencies on this platform."""
    host = re.search(r"^host: (.*)$", run("rustc", "-vV"), re.M).group(1)
    return json.loads(run("cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", host))


def run(*command):
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def checksums():
    """The checksum of each crate, as Cargo.lock has it."""
    found = {}
    for package in (ROOT / "Cargo.lock").read_text().split("[[package]]")[1:]:
        fields = dict(re.findall(r'^(\w+) = "(.*)"$', package, re.M))
        found[fields["name"], fields["version"]] = fields.get("checksum")
    return found


def linked():
    """Name and version of every package that is linked into the program: not those that only build or test it."""
    tree = run("cargo", "tree", "--locked", "--edges", "normal,no-proc-macro", "--prefix", "none", "--no-dedupe", "--format", "{p}")
    lines = (line.split() for line in tree.splitlines() if line)
    return {(words[0], words[1].removeprefix("v")) for words in lines}


def component(package, checksum):
    entry = {
        "type": "library",
        "bom-ref": package["id"],
        "name": package["name"],
        "version": package["version"],
        "purl": f"pkg:cargo/{package['name']}@{package['version']}",
    }
    if package.get("license"):
        entry["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    if checksum:
        entry["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    return entry


def main():
    arguments = argparse.ArgumentParser(description="Writes what the program is made of.")
    arguments.add_argument("--to", required=True, help="the file")
    to = pathlib.Path(arguments.parse_args().to)
    known, names, sums = metadata(), linked(), checksums()
    root = known["resolve"]["root"]
    packages = sorted(known["packages"], key=lambda package: (package["name"], package["version"]))
    packages = [package for package in packages if (package["name"], package["version"]) in names]
    parts = [
        component(package, sums.get((package["name"], package["version"])))
        for package in packages
        if package["id"] != root
    ]
    own = component(next(package for package in packages if package["id"] == root), None)
    own["type"] = "application"
    bom = {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "metadata": {"component": own}, "components": parts}
    # Paths of this machine say nothing to others.
    text = json.dumps(bom, indent=1).replace(f"path+file://{ROOT}", "path+file:")
    to.write_text(text + "\n")
    print(f"made {to} ({len(parts)} crates)")


if __name__ == "__main__":
    main()

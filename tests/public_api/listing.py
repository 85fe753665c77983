#!/usr/bin/env python3
"""The listing of the library's public API: made from its documentation, kept in `listing.txt`, compared by `.ci/run`.

    cargo doc --no-deps --all-features && python3 tests/public_api/listing.py [--write]

Without `--write` it compares and says what was added and removed; a difference is exit code 1. What is `#[doc(hidden)]` is no
public API and is not listed; neither are implementations that the compiler or another crate gives to every type.
"""

import argparse
import difflib
import os
import pathlib
import sys
from html.parser import HTMLParser

HERE = pathlib.Path(__file__).resolve().parent
LISTING = HERE / "listing.txt"
ROOT = HERE.parent.parent
DOCUMENTATION = ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "doc" / "seriatim"

# How rustdoc begins the id of what belongs to an item.
PARTS = ("variant.", "structfield.", "method.", "tymethod.", "associatedconstant.", "associatedtype.")
# Lists of implementations that every type has, or that are another item's.
FOREIGN = ("synthetic-implementations-list", "blanket-implementations-list", "implementors-list", "deref-methods-")
# Elements that have no end.
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"}


class Links(HTMLParser):
    """The addresses of a page's links, each with its text, inside `all.html`."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attributes):
        href = dict(attributes).get("href", "")
        if tag == "a" and href.endswith(".html") and not href.startswith((".", "#", "http")):
            self.found.append(href)


class Parts(HTMLParser):
    """What an item consists of: its declaration's first words, its variants, fields and methods, and the traits it has."""

    def __init__(self):
        super().__init__()
        self.path = []
        self.signature = None
        self.lines = []

    def handle_starttag(self, tag, attributes):
        if tag in VOID:
            return
        attributes = dict(attributes)
        names = attributes.get("class", "").split()
        self.path.append((tag, attributes.get("id", ""), names))
        if self.signature is None and self.is_signature(tag, names):
            self.signature = (len(self.path), [])

    def is_signature(self, tag, names):
        ids = [identity for _, identity, _ in self.path]
        if any(identity.startswith(FOREIGN) for identity in ids):
            return False
        if "code-header" in names:
            inside = [identity for identity in ids if identity.startswith("impl-")]
            of_trait = any(identity == "trait-implementations-list" for identity in ids)
            # Of a trait's implementation the head is enough: the trait says what is in it.
            return not of_trait or bool(inside) and not any(identity.startswith(PARTS) for identity in ids)
        parent = self.path[-2] if len(self.path) > 1 else ("", "", [])
        return tag == "code" and (parent[1].startswith("structfield.") or ".field." in parent[1])

    def handle_endtag(self, tag):
        while self.path and self.path[-1][0] != tag:
            self.path.pop()
        if self.signature and len(self.path) <= self.signature[0]:
            self.lines.append(" ".join("".join(self.signature[1]).split()))
            self.signature = None
        if self.path:
            self.path.pop()

    def handle_data(self, data):
        if self.signature:
            self.signature[1].append(data)


def parsed(parser, path):
    parser.feed(path.read_text(encoding="utf-8"))
    return parser


def item_of(address):
    """`view/struct.Counts.html` as `struct view::Counts`."""
    *modules, page = address.removesuffix(".html").split("/")
    kind, name = page.split(".", 1)
    return f"{kind} {'::'.join([*modules, name])}"


def listing():
    """Every line of the listing, in order."""
    pages = sorted(set(parsed(Links(), DOCUMENTATION / "all.html").found), key=item_of)
    lines = []
    for address in pages:
        item = item_of(address)
        parts = parsed(Parts(), DOCUMENTATION / address).lines
        lines.append(item)
        name = item.split(" ", 1)[1]
        own = {f"impl {name.rsplit('::', 1)[-1]}", "StructuralPartialEq"}
        lines.extend(f"    {part}" for part in sorted(set(parts)) if part and not own & {part, *part.split()})
    return lines


def main():
    arguments = argparse.ArgumentParser(description="Compares the library's public API with its listing.")
    arguments.add_argument("--write", action="store_true", help="write the listing instead")
    write = arguments.parse_args().write
    if not (DOCUMENTATION / "all.html").is_file():
        sys.exit(f"there is no documentation in {DOCUMENTATION}: run cargo doc --no-deps --all-features first")
    found = listing()
    if write:
        LISTING.write_text("\n".join(found) + "\n", encoding="utf-8")
        print(f"{LISTING.name}: {len(found)} lines")
        return
    known = LISTING.read_text(encoding="utf-8").splitlines()
    changed = [line for line in difflib.unified_diff(known, found, "listed", "found", n=0, lineterm="")]
    if changed:
        print("\n".join(changed))
        sys.exit("the public API differs from tests/public_api/listing.txt: say in CHANGELOG.md what changed, and write it anew with --write")
    print(f"the public API is as listed: {len(found)} lines")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Looks at every link of a site: whether the page or file is there, and the heading in it.

    python3 release/site_links.py target/site
"""

import html.parser
import pathlib
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    """What a page links to, and what can be linked to in it."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id" and value:
                self.anchors.add(value)
            elif name in ("href", "src") and value and not value.startswith(("http:", "https:", "data:", "mailto:")):
                self.links.append(value)


def main():
    site = pathlib.Path(sys.argv[1]).resolve()
    # The page for printing has all of them once more, with links that mean the pages themselves.
    pages = {path: Page(path.read_text()) for path in site.rglob("*.html") if path.name not in ("print.html", "404.html")}
    broken = []
    for path, page in sorted(pages.items()):
        for link in page.links:
            parts = urllib.parse.urlsplit(link)
            target = path if not parts.path else (path.parent / urllib.parse.unquote(parts.path)).resolve()
            is_heading_there = target not in pages or not parts.fragment or parts.fragment in pages[target].anchors
            if not target.exists() or not is_heading_there:
                broken.append(f"{path.relative_to(site)}: {link}")
    for line in broken:
        print(line)
    print(f"{len(pages)} pages, {sum(len(page.links) for page in pages.values())} links, {len(broken)} lead nowhere")
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()

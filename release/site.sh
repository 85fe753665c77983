#!/usr/bin/env bash
# Makes the site of the documentation in target/site, and looks at every link of it. Uploads nothing. Compiles mdBook once.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

program=$(command -v mdbook || echo target/site-tools/bin/mdbook)
if [[ ! -x $program ]]; then
    cargo install --quiet --locked mdbook --no-default-features --features search --root target/site-tools
fi
# What lies outside of docs/ is no page of the site: such links become the names of files.
rm -rf target/site-source target/site
cp -r docs target/site-source
find target/site-source -name '*.md' -exec sed -E -i 's#\[([^]]*)\]\((\.\./)+([^):]*\.(md|rs|py|toml|json|yml|sh|txt)|[^):]*/)?\)#\1 (`\3`)#g' {} +
{
    printf '\n# What was decided, and why\n\n'
    for file in docs/decisions/*.md; do
        printf -- '- [%s](decisions/%s)\n' "$(sed -n '1s/^# //p' "$file")" "$(basename "$file")"
    done
} >>target/site-source/SUMMARY.md
MDBOOK_BOOK__SRC=target/site-source "$program" build
python3 release/site_links.py target/site
echo "made target/site/index.html"

#!/usr/bin/env bash
# Makes the archive that people without a package manager take: the program, licences, unit and completions. Uploads
# nothing. Needs strip (package binutils) and python3.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

target=$(rustc -vV | sed -n 's/^host: //p')
name="seriatim-$version-$target"
archive="$files/$name.tar.gz"

main() {
    local binary
    binary=$(binary dynamic)
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    install -d "$work/$name/completions"
    strip -o "$work/$name/seriatim" "$binary"
    chmod 755 "$work/$name/seriatim"
    "$binary" completions bash >"$work/$name/completions/seriatim.bash"
    "$binary" completions zsh >"$work/$name/completions/_seriatim"
    "$binary" completions fish >"$work/$name/completions/seriatim.fish"
    install -m 644 README.md CHANGELOG.md docs/installing.md docs/systemd/seriatim.service "$work/$name"
    licences "$work/$name"
    tar --create --directory "$work" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" "$name" |
        gzip "-${SERIATIM_PACK_LEVEL:-9}n" >"$archive"
    made "$archive"
}

main

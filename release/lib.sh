# What every script of this folder needs to know; sourced, not run.
# shellcheck shell=bash
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export LC_ALL=C
umask 022

# Where packages are put.
files=${SERIATIM_RELEASE_FILES:-target/release-files}
mkdir -p "$files"
files=$(cd "$files" && pwd)

version=$(sed -n '/^\[package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)

# What is packed has the time of the commit, so that the same commit gives the same bytes.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
export SOURCE_DATE_EPOCH

# Prints where the binary is, after building it: dynamic, or static for images without a C library.
# SERIATIM_BINARY names one that is there already, as tests do.
binary() {
    local linking=$1 flags=()
    if [[ -n ${SERIATIM_BINARY:-} ]]; then
        echo "$SERIATIM_BINARY"
        return
    fi
    if [[ $linking == static ]]; then
        flags=(-C target-feature=+crt-static)
    fi
    # One folder, so that both share all they have in common: only the last crate is told how it is linked.
    cargo rustc --locked --profile dist --bin seriatim --target-dir target/release-build -- "${flags[@]}" >&2
    cp target/release-build/dist/seriatim "target/release-build/seriatim-$linking"
    echo "target/release-build/seriatim-$linking"
}

# Puts what the licences of this program and of all that is linked into it ask for into a folder.
licences() {
    install -m 644 LICENSE LICENSE-APACHE LICENSE-MIT "$1"
    python3 release/notices.py --to "$1/THIRD-PARTY.txt" >&2
}

# The processor as Debian calls it.
architecture() {
    dpkg --print-architecture
}

# made FILE...: says what there is to be taken, and how large it is.
made() {
    local file
    for file; do
        printf 'made %s (%s bytes)\n' "$file" "$(stat -c %s "$file")"
    done
}

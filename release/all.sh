#!/usr/bin/env bash
# Makes every package, what the program is made of, and the checksums of all. Uploads nothing.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

main() {
    rm -f "$files"/seriatim* "$files"/SHA256SUMS
    release/deb.sh
    release/archive.sh
    release/container.sh
    python3 release/wheel.py --binary "$(binary dynamic)" --to "$files"
    python3 release/wheel.py --binary none --to "$files"
    if command -v npm >/dev/null; then
        (cd clients/typescript && npm ci --no-audit --no-fund --ignore-scripts >&2)
        python3 release/npm.py --binary "$(binary dynamic)" --to "$files"
    else
        echo "there is no npm: its packages are not made" >&2
    fi
    python3 release/sbom.py --to "$files/seriatim-$version.cdx.json"
    (cd "$files" && sha256sum seriatim* >SHA256SUMS)
    made "$files/SHA256SUMS"
}

main

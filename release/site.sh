#!/usr/bin/env bash
# Makes the site of the documentation in target/site. Uploads nothing. Compiles mdBook once.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mdbook --version 2>/dev/null || cargo install --locked mdbook --target-dir target/mdbook
mdbook build
echo "made target/site/index.html"

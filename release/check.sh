#!/usr/bin/env bash
# Checks that take minutes to install what they need: licences, sources and duplicates of the dependencies, and the links of
# the site of the documentation (those of the documents themselves are checked by `cargo test --test tidy`). Advisories
# need a database from the network and are checked with `cargo deny check advisories` where that can be reached.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

cargo deny --version 2>/dev/null || cargo install --locked cargo-deny --target-dir target/cargo-deny
cargo deny --all-features check bans licenses sources
release/site.sh

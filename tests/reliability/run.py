#!/usr/bin/env python3
"""Runs every test that looks for loss, doubling or overtaking, and says what each has tried.

Usage: python3 tests/reliability/run.py [--long FACTOR] [--share PARTS] [--write docs/reliability.md] [NAME ...]

Each test prints lines that begin with `reliability:`; they are collected here. `--long 10` tries ten times as much as
every run does, and `--share 2` a half of it. With `--write`, the block of figures of the document is replaced. Exits with 1 when a test fails.
"""
import argparse
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PREFIX, SKIPPED = "reliability: ", "skipped: "
# What the harness says at the end of a test program: how many have run.
COUNTED = re.compile(r"test result: ok\. (\d+) passed")
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"

# The engine alone, optimised: millions of steps are played.
ENGINE = ["--profile", "proof", "--no-default-features", "--lib"]
# name, arguments of cargo test, how much every run tries
TESTS = [
    ("simulation", [*ENGINE, "engine::tests::simulation"], {
        "SERIATIM_SIMULATION_SEEDS": 50_000,
        "SERIATIM_SIMULATION_DISK_SEEDS": 500,
        "SERIATIM_SIMULATION_TWICE": 1_000,
    }),
    ("crash", [*ENGINE, "engine::tests::crash"], {
        "SERIATIM_CRASH_POINTS": 13_400,
        "SERIATIM_FAULT_RUNS": 5_000,
        "SERIATIM_BIT_FLIPS": 10_000,
    }),
    ("handoff", [*ENGINE, "engine::tests::handoff"], {"SERIATIM_SCHEDULES": 300_000}),
    ("kill", ["--test", "kill"], {"SERIATIM_KILLS": 300}),
    ("daemon", ["--test", "end_to_end", "survive_every_kill"], {"SERIATIM_DAEMON_KILLS": 60}),
    ("model", ["--test", "model"], {}),
    ("fuzz", ["--test", "fuzz"], {}),
    ("redb-4.1", ["--manifest-path", "tests/reliability/redb-4.1/Cargo.toml", "--target-dir", "target/redb-4.1"], {}),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[[], *[name for name, _, _ in TESTS]])
    parser.add_argument("--long", type=int, default=1, metavar="FACTOR")
    parser.add_argument("--share", type=int, default=1, metavar="PARTS")
    parser.add_argument("--write", type=pathlib.Path, metavar="FILE")
    arguments = parser.parse_args()
    if arguments.write and arguments.share > 1:
        sys.exit("--write: the document shows what is tried in full, so leave --share out")
    if arguments.write and changed(arguments.write):
        sys.exit("--write: there are changes that are not committed, so the figures would be of no commit")
    rows, failed = [], []
    for name, test, volumes in TESTS:
        if arguments.names and name not in arguments.names:
            continue
        tried = {key: str(value * arguments.long // arguments.share) for key, value in volumes.items()}
        found, passed = run(test, tried)
        rows += found
        if not passed:
            failed.append(name)
    table = figures(rows, arguments.long, arguments.share)
    print("\n" + table)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
        sys.exit(1)
    if arguments.write:
        write(arguments.write, table)


def run(test, volumes):
    """Runs one test target; what it has tried, and whether it passed."""
    command = ["cargo", "test", "--locked", *test, "--", "--nocapture"]
    said = " ".join(f"{key}={value}" for key, value in volumes.items())
    print(f"\n$ {said} {' '.join(command)}", flush=True)
    process = subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, **volumes}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    rows, ran = [], 0
    for line in process.stdout:
        counted = COUNTED.search(line)
        ran += int(counted.group(1)) if counted else 0
        at, skipped_at = line.find(PREFIX), line.find(SKIPPED)
        if at >= 0:
            rows.append(json.loads(line[at + len(PREFIX):]))
        elif skipped_at >= 0:
            name, _, why = line[skipped_at + len(SKIPPED):].strip().partition(": ")
            rows.append({"name": name, "skipped": why})
        print(line, end="", flush=True)
    passed = process.wait() == 0
    if passed and ran == 0:
        print(f"no test has run: nothing is named by {test[-1]} any more", flush=True)
    return rows, passed and ran > 0


def changed(path):
    """Whether anything but the document itself differs from the commit."""
    command = ["git", "status", "--porcelain", "--untracked-files=no"]
    lines = subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.splitlines()
    return any((ROOT / line[3:]).resolve() != path.resolve() for line in lines)


def figures(rows, factor, parts):
    """The table of what was tried."""
    commit = subprocess.run(["git", "describe", "--always"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    where = f"{os.cpu_count()} cores, {platform.system()} {platform.release()}, seriatim {commit or 'without history'}"
    volume = "What every run tries" if factor == 1 else f"{factor} times what every run tries"
    volume += f", one part of {parts}" if parts > 1 else ""
    lines = [f"{volume}, {time.strftime('%Y-%m-%d')}; {where}.", "", "| test | tried | seconds | failures |", "|---|---|---:|---:|"]
    for row in rows:
        if "skipped" in row:
            lines.append(f"| {row['name']} | nothing: {row['skipped']} | | skipped |")
            continue
        counts = row.get("counts") or {"": row.get("count", 0)}
        tried = ", ".join(f"{count:,} {what}".replace("_", " ").strip() for what, count in counts.items())
        lines.append(f"| {row['name']} | {tried} | {row['seconds']:.0f} | {row['failures']} |")
    return "\n".join(lines) + "\n"


def write(path, table):
    text = path.read_text()
    before, rest = text.split(BEGIN, 1)
    _, after = rest.split(END, 1)
    path.write_text(f"{before}{BEGIN}\n{table}{END}{after}")


if __name__ == "__main__":
    main()

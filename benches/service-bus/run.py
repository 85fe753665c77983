#!/usr/bin/env python3
"""Measures the endpoint of Service Bus with a real AMQP client.

Usage: python3 benches/service-bus/run.py [BINARY] [--rounds N] [--json]

Each round sends 100,000 messages of 200 bytes over one connection and receives and accepts them over another; it then lets
500 connections with 1,000 sessions send 20 messages to each and take them in order. Prints the medians: messages a second,
and the daemon's CPU time for each message in microseconds, that of the engine's own threads and that of all others, which is
the endpoint's. BINARY is target/release/seriatim by default. Needs node; `rhea` is taken from where
`cargo test --test end_to_end sdk::` has installed the SDKs, or from the folder that SDK_FOLDER names.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
COUNT = 100_000
TICKS = os.sysconf("SC_CLK_TCK")
ENGINE_THREADS = ("seriatim-writer", "seriatim-commit")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary", nargs="?", default=str(ROOT / "target/release/seriatim"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rounds = []
    for number in range(arguments.rounds):
        rounds.append(served(arguments.binary))
        found = rounds[-1]
        if not arguments.json:
            print(f"round {number + 1}: " + ", ".join(f"{name} {value:,.1f}" for name, value in found.items()))
    median = {name: round(statistics.median(found[name] for found in rounds), 1) for name in rounds[0]}
    print(json.dumps(median) if arguments.json else f"medians: {median}")


def served(binary):
    """What the daemon's process used for each message, in microseconds, and messages a second."""
    with tempfile.TemporaryDirectory() as folder:
        definitions = pathlib.Path(folder) / "workflows"
        definitions.mkdir()
        (definitions / "load.toml").write_text('order = "none"\n[delivery]\nlock = "5m"\n')
        (definitions / "crowd.toml").write_text('order = "arrival"\n[delivery]\nlock = "5m"\n')
        command = [binary, "run", definitions, "--data", f"{folder}/data", "--http", "127.0.0.1:0", "--amqp", "127.0.0.1:0", "--json"]
        daemon = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            port = json.loads(daemon.stdout.readline())["amqp"].rsplit(":", 1)[1]
            found = {}
            for mode, count in [("send", COUNT), ("receive", COUNT), ("crowd", 0)]:
                before = cpu_seconds(daemon.pid)
                done = play(port, mode, count)
                after = cpu_seconds(daemon.pid)
                count = count or done["messages"]
                if done.get("wrong"):
                    raise SystemExit(f"{done['wrong']} messages of sessions were out of order")
                for who in after:
                    found[f"{mode}_{who}_us"] = (after[who] - before[who]) / count * 1e6
                found[f"{mode}_per_second"] = count / done["seconds"]
            return found
        finally:
            daemon.terminate()
            daemon.wait()


def play(port, mode, count):
    environment = {**os.environ, "SDK_FOLDER": str(sdk_folder())}
    played = subprocess.run(["node", HERE / "load.mjs", port, mode, str(count)], capture_output=True, text=True, env=environment, timeout=300)
    if played.returncode != 0:
        raise SystemExit(f"{mode}: {played.stderr}")
    return json.loads(played.stdout)


def sdk_folder():
    if "SDK_FOLDER" in os.environ:
        return os.environ["SDK_FOLDER"]
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    found = sorted((target / "tmp").glob("sdk-node-*/node_modules/rhea"))
    if not found:
        sys.exit("rhea is not installed: run `cargo test --test end_to_end sdk::`, or name a folder with it in SDK_FOLDER")
    return found[-1].parents[1]


def cpu_seconds(pid):
    """What the engine's threads have used so far, and what all others have."""
    used = {"engine": 0.0, "endpoint": 0.0}
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        name, fields = (task / "stat").read_text().split("(", 1)[1].rsplit(") ", 1)
        who = "engine" if name in ENGINE_THREADS else "endpoint"
        used[who] += (int(fields.split()[11]) + int(fields.split()[12])) / TICKS
    return used


if __name__ == "__main__":
    main()

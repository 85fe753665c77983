#!/usr/bin/env python3
"""Measures the endpoint of Service Bus with a real AMQP client, and the engine embedded, in turns.

Usage: python3 benches/service-bus/run.py [BINARY] [--rounds N] [--json]

Each round sends 100,000 messages of 200 bytes over one connection and receives and accepts them over another; it then lets
500 connections with 1,000 sessions send 20 messages to each and take them in order; and runs `seriatim bench live` for
100,000 messages. Prints the medians: the daemon's CPU time for each message in microseconds, and what is left of both when
the engine's own is taken off. BINARY is target/release/seriatim by default. Needs node; `rhea` is taken from where
`cargo test --test sdk` has installed the SDKs, or from the folder that SDK_FOLDER names.
"""
import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
COUNT = 100_000
TICKS = os.sysconf("SC_CLK_TCK")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary", nargs="?", default=str(ROOT / "target/release/seriatim"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rounds = []
    for number in range(arguments.rounds):
        rounds.append({**served(arguments.binary), **embedded(arguments.binary)})
        found = rounds[-1]
        found["beyond_engine_us"] = found["send_us"] + found["receive_us"] - found["engine_us"]
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
                used = cpu_seconds(daemon.pid) - before
                count = count or done["messages"]
                if done.get("wrong"):
                    raise SystemExit(f"{done['wrong']} messages of sessions were out of order")
                found[f"{mode}_us"] = used / count * 1e6
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
        sys.exit("rhea is not installed: run `cargo test --test sdk`, or name a folder with it in SDK_FOLDER")
    return found[-1].parents[1]


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def embedded(binary):
    """What the engine alone uses for a message that is sent, received and completed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [binary, "bench", "live", "--messages", str(COUNT), "--json"]
    subprocess.run(command, capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"engine_us": used / COUNT * 1e6}


if __name__ == "__main__":
    main()

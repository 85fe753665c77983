"""``python -m seriatim run MODULE:APP``: runs the handlers of an app."""

from __future__ import annotations

import argparse
import importlib
import logging
import sys

from seriatim.app import App


def main() -> None:
    """Reads the arguments, and runs the app."""
    parser = argparse.ArgumentParser(prog="python -m seriatim", description="Runs the handlers of an app.")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="receive and handle until SIGTERM")
    run.add_argument("app", help="where the app is, as MODULE:NAME")
    run.add_argument("--url", help="the daemon [SERIATIM_URL, else http://127.0.0.1:7700]")
    run.add_argument("--concurrency", type=int, help="how many messages of each queue are handled at once [32]")
    run.add_argument("--renew-for", type=float, default=300, help="how many seconds the lock of a message is renewed [300]")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    module, _, name = arguments.app.partition(":")
    sys.path.insert(0, ".")
    try:
        app = getattr(importlib.import_module(module), name or "app")
    except (ImportError, AttributeError) as error:
        sys.exit(f"cannot find the app {arguments.app}: {error}")
    if not isinstance(app, App):
        sys.exit(f"cannot run {arguments.app}: it is a {type(app).__name__}, and no seriatim.App")
    app.run(arguments.url, concurrency=arguments.concurrency, renew_for=arguments.renew_for)


if __name__ == "__main__":
    main()

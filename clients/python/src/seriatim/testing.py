"""A throw-away daemon for tests: its store is gone when it ends."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from typing import Any, Dict, Optional

from seriatim.client import Client


def program() -> str:
    """The program ``seriatim``: ``SERIATIM_PROGRAM``, that of this package, or the one on the PATH."""
    beside = os.path.join(os.path.dirname(__file__), "bin", "seriatim")
    found = os.environ.get("SERIATIM_PROGRAM") or (beside if os.path.exists(beside) else shutil.which("seriatim"))
    if not found:
        raise FileNotFoundError("there is no program seriatim on the PATH; SERIATIM_PROGRAM may say where it is")
    return found


class DevDaemon:
    """A daemon on a free port, with the definitions of a folder or none, and a store that ends with it.

    >>> with DevDaemon() as daemon:  # doctest: +SKIP
    ...     daemon.client().queue("orders").create(order="position")
    """

    def __init__(self, definitions: Optional[str] = None, env: Optional[Dict[str, str]] = None) -> None:
        self._folder = tempfile.mkdtemp(prefix="seriatim-") if definitions is None else None
        argv = [program(), "dev", "--json", "--http", "127.0.0.1:0", definitions or str(self._folder)]
        self._log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            argv, stdout=subprocess.PIPE, stderr=self._log, stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})}
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            code = self.process.wait()
            raise RuntimeError(f"the daemon did not start (exit code {code}): {self.log().strip()}")
        self.url: str = json.loads(line)["http"]

    def client(self, **options: Any) -> Client:
        """A client of it."""
        return Client(self.url, **options)

    def log(self) -> str:
        """What it has logged."""
        self._log.seek(0)
        return self._log.read().decode(errors="replace")

    def stop(self) -> None:
        """Ends it, and what it stored."""
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
        self._log.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> "DevDaemon":
        return self

    def __exit__(self, *_: Any) -> None:
        self.stop()

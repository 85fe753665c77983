"""What the README shows."""

import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from seriatim.testing import DevDaemon, program

ROOT = pathlib.Path(__file__).resolve().parent.parent


@contextlib.contextmanager
def dev(folder):
    """``seriatim dev`` as the README starts it, with the demonstration that it shows in a folder without definitions; its URL."""
    argv = [program(), "dev", "--json", "--http", "127.0.0.1:0"]
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(argv, cwd=folder, **streams) as daemon:
        try:
            yield json.loads(daemon.stdout.readline())["http"]
        finally:
            daemon.terminate()


class OfTheReadme(unittest.TestCase):
    def test_every_python_snippet_runs(self):
        snippets = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)
        self.assertEqual(len(snippets), 3)
        with DevDaemon() as daemon:
            for snippet in snippets:
                text = snippet.replace("http://127.0.0.1:7700", daemon.url)
                env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
                ran = subprocess.run([sys.executable, "-c", text], env=env, capture_output=True, text=True, timeout=60)
                self.assertEqual(ran.returncode, 0, f"{snippet}\n{ran.stderr}")

    def test_the_first_result_is_as_shown(self):
        text = (ROOT / "README.md").read_text()
        handlers = re.search(r"<<'END'\n(.*?)^END$", text, re.M | re.S).group(1)
        sends = re.search(r"python3 -c '\n(.*?)'$", text, re.M | re.S).group(1)
        with tempfile.TemporaryDirectory() as folder, dev(folder) as url:
            pathlib.Path(folder, "handlers.py").write_text(handlers)
            env = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "SERIATIM_URL": url, "PYTHONUNBUFFERED": "1"}
            subprocess.run([sys.executable, "-c", sends], env=env, check=True, timeout=60)
            argv = [sys.executable, "-m", "seriatim", "run", "handlers:app"]
            with subprocess.Popen(argv, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as worker:
                lines = [worker.stdout.readline().decode() for _ in range(2)]
                worker.terminate()
        self.assertEqual(lines, ["order-42 {'total': 5}\n", "order-42 {'paid': 5}\n"])


if __name__ == "__main__":
    unittest.main()

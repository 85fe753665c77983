"""The wheel, installed where there is nothing else."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from seriatim.testing import program

SCRIPT = pathlib.Path(__file__).resolve().parents[3] / "release" / "wheel.py"


@unittest.skipUnless(shutil.which("strip") and shutil.which("readelf"), "there are no binutils")
class OfTheWheel(unittest.TestCase):
    def test_it_brings_the_client_and_the_program(self):
        with tempfile.TemporaryDirectory() as folder:
            made = self.run_in(folder, [sys.executable, str(SCRIPT), "--binary", program(), "--to", folder])
            wheel = made.strip()
            self.assertRegex(wheel, r"py3-none-manylinux_2_\d+_\w+\.whl$")
            self.run_in(folder, [sys.executable, "-m", "venv", "v"])
            self.run_in(folder, ["v/bin/pip", "install", "--quiet", "--no-index", wheel])
            self.assertIn("seriatim", self.run_in(folder, ["v/bin/seriatim", "--version"]))
            notices = list(pathlib.Path(folder).glob("v/lib/python*/site-packages/seriatim-*/licenses/THIRD-PARTY.txt"))
            self.assertIn("\nredb ", notices[0].read_text())
            story = (
                "from seriatim.testing import DevDaemon\n"
                "with DevDaemon() as daemon, daemon.client() as client:\n"
                "    queue = client.queue('q'); queue.create(); queue.send('x', workflow='w')\n"
                "    print(queue.receive(wait=5)[0].text)\n"
            )
            self.assertEqual(self.run_in(folder, ["v/bin/python", "-c", story]), "x\n")

    def run_in(self, folder, argv):
        env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "SERIATIM_PROGRAM")}
        ran = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, timeout=120)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return ran.stdout


if __name__ == "__main__":
    unittest.main()

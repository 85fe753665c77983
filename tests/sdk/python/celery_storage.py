"""Celery with its transport for storage queues, unmodified: it makes its queues itself."""
import collections
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from stage import ACCOUNT, ACCOUNT_KEY, play, promise

TASKS = f"""
from celery import Celery

url = "http://{os.environ['SERIATIM_STORAGE_QUEUE']}/{ACCOUNT}"
app = Celery("tasks", broker="azurestoragequeues://{ACCOUNT_KEY}@" + url)
app.conf.task_acks_late = True


@app.task(bind=True, max_retries=3)
def note(self, number):
    with open("done", "a") as done:
        done.write(f"{{number}}\\n")
    if number == 3 and self.request.retries == 0:
        raise self.retry(countdown=1)
"""


@promise
def celery_runs_every_task_once_and_again_when_it_asks_for_that():
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONPATH": folder}
        (pathlib.Path(folder) / "tasks.py").write_text(TASKS)
        send = "from tasks import note\nfor number in range(10): note.delay(number)"
        subprocess.run([sys.executable, "-c", send], env=environment, cwd=folder, check=True, timeout=60)
        log = pathlib.Path(folder) / "worker.log"
        with open(log, "w") as told:
            worker = subprocess.Popen(
                [sys.executable, "-m", "celery", "-A", "tasks", "worker", "--pool=solo", "--loglevel=INFO",
                 "--without-gossip", "--without-mingle"], env=environment, cwd=folder, stdout=told, stderr=told)
        expected = collections.Counter({str(number): 2 if number == 3 else 1 for number in range(10)})
        done = pathlib.Path(folder) / "done"
        counted = collections.Counter()
        deadline = time.monotonic() + 60
        while counted.total() < expected.total() and time.monotonic() < deadline:
            time.sleep(0.1)
            counted = collections.Counter(done.read_text().split() if done.exists() else [])
        worker.kill()
        worker.wait()
        assert counted == expected, f"{counted}\n{log.read_text()[-4000:]}"


play()

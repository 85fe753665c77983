"""Celery with its Service Bus transport, unmodified: it makes its queues itself, at a host of Azure's own name.

The name is resolved in a mount namespace of the script's own, and the ports of Azure are those of a network namespace of its
own, so that nothing of this machine is touched. Where namespaces cannot be made, nothing is played, and that is said.
"""
import collections
import datetime
import fcntl
import ipaddress
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

import certifi

from stage import play, promise

HOST = "shop.servicebus.windows.net"
KEY = "c2VyaWF0aW0tdGVzdC1rZXktMDEyMzQ1Njc4OWFiY2Q"
KEYS = '[[key]]\nname = "RootManageSharedAccessKey"\nkey_env = "CELERY_SECRET"\nrights = ["manage", "send", "listen"]\n'
TASKS = f"""
from celery import Celery

app = Celery("tasks", broker="azureservicebus://RootManageSharedAccessKey:{KEY}@shop")
app.conf.broker_transport_options = {{"wait_time_seconds": 1, "peek_lock_seconds": 60}}
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
    apart = ["unshare", "--mount", "--net"]
    if subprocess.run([*apart, "true"], stderr=subprocess.DEVNULL).returncode != 0:
        print("skipped: no namespaces can be made here", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory() as folder:
        ran = subprocess.run(
            [*apart, sys.executable, __file__, "inside", folder], capture_output=True, text=True, timeout=150)
        logs = "\n".join(path.read_text()[-4000:] for path in pathlib.Path(folder).glob("*.log"))
        assert ran.returncode == 0, f"{ran.stdout}\n{ran.stderr}\n{logs}"


def bring_up_loopback():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sh14s", b"lo", 0x1 | 0x40, b"")  # IFF_UP, IFF_RUNNING
        fcntl.ioctl(control, 0x8914, request)  # SIOCSIFFLAGS


def make_certificate(folder):
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "servicebus")])
    now = datetime.datetime.now(datetime.timezone.utc)
    names = x509.SubjectAlternativeName([
        x509.DNSName("*.servicebus.windows.net"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    certificate = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1)).add_extension(names, critical=False)
        .sign(key, hashes.SHA256()))
    (folder / "certificate.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))


def until(is_so, what, seconds=60):
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


def is_listening(port):
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


def inside(folder):
    bring_up_loopback()
    (folder / "hosts").write_text(f"127.0.0.1 localhost {HOST}\n")
    subprocess.run(["mount", "--bind", str(folder / "hosts"), "/etc/hosts"], check=True)
    make_certificate(folder)
    # Trusted by these processes, and by nobody else: the packages look here, or where the environment says.
    subprocess.run(["mount", "--bind", str(folder / "certificate.pem"), certifi.where()], check=True)
    trusted = {name: str(folder / "certificate.pem") for name in ("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE")}
    (folder / "keys.toml").write_text(KEYS)
    (folder / "tasks.py").write_text(TASKS)
    (folder / "workflows").mkdir()
    os.chdir(folder)
    with open("daemon.log", "w") as log:
        daemon = subprocess.Popen(
            [os.environ["SERIATIM_PROGRAM"], "run", "workflows", "--data", "data", "--http", "127.0.0.1:7700",
             "--keys", "keys.toml", "--amqp", "127.0.0.1:5671", "--amqp", "127.0.0.1:443",
             "--tls-certificate", "certificate.pem", "--tls-key", "key.pem"],
            env={"CELERY_SECRET": KEY, "PATH": os.environ["PATH"]}, stdout=log, stderr=log)
    until(lambda: is_listening(443), "the daemon does not listen")
    environment = {**os.environ, **trusted, "PYTHONPATH": str(folder)}
    send = "from tasks import note\nfor number in range(10): note.delay(number)"
    subprocess.run([sys.executable, "-c", send], env=environment, check=True, timeout=60)
    with open("worker.log", "w") as log:
        worker = subprocess.Popen(
            [sys.executable, "-m", "celery", "-A", "tasks", "worker", "--pool=solo", "--loglevel=INFO",
             "--without-gossip", "--without-mingle"], env=environment, stdout=log, stderr=log)
    expected = collections.Counter({str(number): 2 if number == 3 else 1 for number in range(10)})
    done = pathlib.Path("done")
    counted = lambda: collections.Counter(done.read_text().split() if done.exists() else [])
    until(lambda: counted().total() >= expected.total(), "not all tasks were run")
    worker.kill()
    worker.wait()
    daemon.send_signal(signal.SIGTERM)
    assert daemon.wait(timeout=30) == 0
    assert counted() == expected, counted()


if sys.argv[1:2] == ["inside"]:
    inside(pathlib.Path(sys.argv[2]))
else:
    play()

//! Who else is in the network of a container: a server of names, and a receiver of webhooks.

use std::path::Path;
use std::process::Stdio;

use crate::packages::room::Room;
use crate::packages::room::Running;
use crate::packages::room::eventually;

/// Answers every question for a name with 127.0.0.1, and every webhook by its body; writes both down.
const SERVERS: &str = r#"
import http.server, socket, sys, threading

names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
names.bind(("127.0.0.1", 53))
log = open(sys.argv[1], "a", buffering=1)

def answer():
    while True:
        asked, who = names.recvfrom(512)
        end = asked.index(b"\0", 12) + 5
        is_v4 = asked[end - 3] == 1
        answer = b"\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04\x7f\0\0\x01" if is_v4 else b""
        head = asked[:2] + b"\x81\x80\0\x01" + (b"\0\x01" if is_v4 else b"\0\0") + b"\0\0\0\0"
        names.sendto(head + asked[12:end] + answer, who)

class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        log.write(f"{self.headers['host']} {body.decode()}\n")
        self.send_response(500 if b"wet" in body else 200)
        self.end_headers()

    def log_message(self, *arguments):
        pass

threading.Thread(target=answer, daemon=True).start()
server = http.server.ThreadingHTTPServer(("127.0.0.1", 8080), Receiver)
log.write("ready\n")
server.serve_forever()
"#;

/// Starts both; what they write down goes to this file.
pub(crate) fn serve(room: &Room, log: &Path) -> Running {
    let mut command = room.network("python3");
    let running = Running::start(command.args(["-c", SERVERS]).arg(log).stdin(Stdio::null()));
    eventually("the servers are ready", || {
        std::fs::read_to_string(log).ok()?.contains("ready").then_some(())
    });
    running
}

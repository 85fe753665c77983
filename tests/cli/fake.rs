//! A daemon that answers what it is told to, and remembers what it was asked.

use std::convert::Infallible;
use std::io::Write;
use std::process::Command;
use std::process::Output;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::Mutex;

use bytes::Bytes;
use http_body_util::BodyExt;
use http_body_util::Full;
use hyper::Request;
use hyper::Response;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

/// A request that came.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// Method, path and query, as `GET /v1/blocked?limit=100`.
    pub(crate) line: String,
    pub(crate) authorization: Option<String>,
    pub(crate) idempotency_key: Option<String>,
    pub(crate) body: Bytes,
}

impl Asked {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("{self:?}"))
    }

    /// The lines of a body of lines of JSON.
    pub(crate) fn lines(&self) -> Vec<Value> {
        let lines = self.body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| serde_json::from_slice(line).unwrap_or_else(|_| panic!("{self:?}"))).collect()
    }
}

/// What is answered.
pub(crate) struct Answer {
    status: u16,
    body: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(value: Value) -> Answer {
        Answer { status: 200, body: value.to_string().into_bytes() }
    }

    pub(crate) fn text(text: impl Into<Vec<u8>>) -> Answer {
        Answer { status: 200, body: text.into() }
    }

    pub(crate) fn empty() -> Answer {
        Answer { status: 204, body: Vec::new() }
    }

    /// A refusal.
    pub(crate) fn problem(status: u16, code: &str, detail: &str) -> Answer {
        Answer { status, body: problem(status, code, detail).to_string().into_bytes() }
    }

    /// A queue in this order, with three messages.
    pub(crate) fn queue(order: &str) -> Answer {
        let counts = json!({ "stored": 3, "ready": 3, "locked": 0, "early": 0, "retry": 0, "exhausted": 0, "by_consumer": 0,
            "scheduled": 0, "dead_lettered": 0, "completed": 0, "expired": 0, "cancelled": 0, "purged": 0, "accepted": 3 });
        Answer::json(
            json!({ "name": "orders", "created_at": 0, "counts": counts, "options": { "order": order } }),
        )
    }

    /// What is no answer of a daemon.
    pub(crate) fn garbage(status: u16) -> Answer {
        Answer { status, body: b"<html>it works</html>".to_vec() }
    }
}

/// A refusal as JSON.
pub(crate) fn problem(status: u16, code: &str, detail: &str) -> Value {
    let kind = format!("urn:seriatim:problem:{code}");
    json!({ "type": kind, "title": "title", "status": status, "detail": detail, "code": code })
}

type Respond = dyn Fn(&Asked) -> Answer + Send + Sync;

/// A daemon on a port of its own, as long as it lives.
pub(crate) struct Fake {
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    _runtime: Runtime,
}

impl Fake {
    pub(crate) fn new(respond: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Fake {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let asked = Arc::new(Mutex::new(Vec::new()));
        runtime.spawn(serve(listener, asked.clone(), Arc::new(respond)));
        Fake { url, asked, _runtime: runtime }
    }

    /// One that is asked how it is, or what its clock shows, beside that.
    pub(crate) fn healthy(respond: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Fake {
        Fake::new(move |asked| match asked.line.as_str() {
            "GET /healthz" => Answer::text("ok\n"),
            _ => respond(asked),
        })
    }

    /// One that gives the same answer to everything.
    pub(crate) fn always(value: Value) -> Fake {
        Fake::new(move |_| Answer::json(value.clone()))
    }

    /// What it was asked.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().expect("nobody panicked").clone()
    }

    /// The methods, paths and queries it was asked.
    pub(crate) fn asked_lines(&self) -> Vec<String> {
        self.asked().into_iter().map(|asked| asked.line).collect()
    }

    /// Runs the binary on it.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        self.run_with(arguments, "")
    }

    /// Runs the binary on it, and reads nothing of what it prints.
    pub(crate) fn run_unread(&self, arguments: &[&str]) -> Option<i32> {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut command = seriatim(arguments);
        let command = command.env("SERIATIM_URL", &self.url).stdin(Stdio::null()).stdout(writer);
        command.stderr(Stdio::null()).status().expect("the binary runs").code()
    }

    /// Runs the binary on it, with something on stdin.
    pub(crate) fn run_with(&self, arguments: &[&str], input: &str) -> Ran {
        let mut command = seriatim(arguments);
        run_command(command.env("SERIATIM_URL", &self.url), input)
    }
}

async fn serve(listener: TcpListener, asked: Arc<Mutex<Vec<Asked>>>, respond: Arc<Respond>) {
    while let Ok((stream, _)) = listener.accept().await {
        let (asked, respond) = (asked.clone(), respond.clone());
        let service = service_fn(move |request| answer(request, asked.clone(), respond.clone()));
        let connection =
            hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        tokio::spawn(connection);
    }
}

async fn answer(
    request: Request<Incoming>,
    all_asked: Arc<Mutex<Vec<Asked>>>,
    respond: Arc<Respond>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let header = |name| head.headers.get(name).and_then(|value| value.to_str().ok()).map(ToOwned::to_owned);
    let asked = Asked {
        line: format!("{} {}", head.method, head.uri),
        authorization: header("authorization"),
        idempotency_key: header("idempotency-key"),
        body: body.collect().await.map(|body| body.to_bytes()).unwrap_or_default(),
    };
    let answer = respond(&asked);
    all_asked.lock().expect("nobody panicked").push(asked);
    let mut response = Response::new(Full::from(answer.body));
    *response.status_mut() = http::StatusCode::from_u16(answer.status).expect("a status");
    Ok(response)
}

/// The binary, with none of the variables that this process may have.
pub(crate) fn seriatim(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_seriatim"));
    let daemon = ["SERIATIM_URL", "SERIATIM_KEY", "SERIATIM_KEY_FILE", "SERIATIM_CA_FILE"];
    for name in daemon.into_iter().chain(["SERIATIM_HTTP", "SERIATIM_TLS_CERTIFICATE"]) {
        command.env_remove(name);
    }
    command.args(arguments).env("TZ", "UTC");
    command
}

/// Runs the binary, and reads nothing of what it prints but what it complains of.
pub(crate) fn run_unread(arguments: &[&str]) -> Ran {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let child = seriatim(arguments).stdin(Stdio::null()).stdout(writer).stderr(Stdio::piped()).spawn();
    let Output { status, stderr, .. } =
        child.and_then(std::process::Child::wait_with_output).expect("it ends");
    Ran { code: status.code(), stdout: String::new(), stderr: String::from_utf8(stderr).expect("text") }
}

/// How the binary ended, and what it printed.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// What it printed as lines of JSON.
    pub(crate) fn json(&self) -> Vec<Value> {
        let read = |line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{self:?}"));
        self.stdout.lines().map(read).collect()
    }
}

/// Runs a command with something on stdin.
pub(crate) fn run_command(command: &mut Command, input: &str) -> Ran {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary runs");
    let mut stdin = child.stdin.take().expect("asked for");
    // It may end without reading all of it.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let Output { status, stdout, stderr } = child.wait_with_output().expect("it ends");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    Ran { code: status.code(), stdout: text(stdout), stderr: text(stderr) }
}

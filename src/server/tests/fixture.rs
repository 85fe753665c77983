//! A server on a free port with an engine in memory, and a caller.

use std::net::Ipv4Addr;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::HeaderMap;
use http::Request;
use http::StatusCode;
use http_body_util::BodyExt;
use http_body_util::Full;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::api::Problem;
use crate::api::WireDuration;
use crate::api::WireTime;
use crate::api::views::ClusterView;
use crate::api::views::DefinitionView;
use crate::api::views::NodeView;
use crate::api::views::ScheduleView;
use crate::api::views::StatusView;
use crate::clock::Timestamp;
use crate::engine::Client;
use crate::engine::Engine;
use crate::engine::Queue;
use crate::error::Misuse;
use crate::id::QueueName;
use crate::message::Message;
use crate::queue::QueueOptions;
use crate::server::Host;
use crate::server::OversizeMessage;
use crate::server::Placement;
use crate::server::Server;
use crate::server::ServerOptions;
use crate::server::WindowStall;
use crate::testing::ManualClock;

/// Queues named `by-body` find workflow and position in their messages' JSON; others take what the sender says.
pub(crate) struct FakePlace;

impl Placement for FakePlace {
    fn place(&self, queue: &QueueName, message: Message) -> Result<Message, Misuse> {
        if queue.as_str() != "by-body" {
            return Ok(message);
        }
        let body: Value = serde_json::from_slice(message.body())
            .map_err(|_| Misuse::new("/order", "is missing: the body is not JSON"))?;
        match (body["order"].as_str(), body["version"].as_u64()) {
            (Some(order), Some(version)) => Ok(message.workflow(order).position(version)),
            (None, _) => Err(Misuse::new("/order", "is missing")),
            (_, None) => Err(Misuse::new("/version", "is not a position")),
        }
    }

    fn retry_delay(&self, queue: &QueueName, delivery_count: u32) -> Option<Duration> {
        match queue.as_str() {
            "delays" => Some(Duration::from_secs(60 * u64::from(delivery_count))),
            "delay" => Some(Duration::from_secs(60)),
            _ => None,
        }
    }

    fn defer_delay(&self, queue: &QueueName) -> Option<Duration> {
        (queue.as_str() == "delays").then(|| Duration::from_secs(3_600))
    }
}

/// A daemon with one definition.
#[derive(Default)]
pub(crate) struct FakeHost {
    /// Why it is not ready.
    pub(crate) not_ready: Mutex<Option<String>>,
    /// What is wrong with the definition files.
    pub(crate) reload_problem: Option<String>,
    pub(crate) paused: AtomicBool,
    pub(crate) backups: Option<PathBuf>,
    /// Messages that are too large for their receivers.
    pub(crate) too_large: Mutex<Vec<(QueueName, OversizeMessage)>>,
    /// A queue whose receivers are sent nothing for now.
    pub(crate) full_window: Mutex<Option<(QueueName, WindowStall)>>,
}

impl Host for FakeHost {
    fn cluster(&self) -> BoxFuture<'_, Result<ClusterView, Problem>> {
        let node = NodeView { node: "node-1".to_owned(), ..NodeView::default() };
        std::future::ready(Ok(ClusterView { nodes: vec![node], ..ClusterView::default() })).boxed()
    }

    fn drain_node<'a>(&'a self, _node: &'a str, _drains: bool) -> BoxFuture<'a, Result<(), Problem>> {
        std::future::ready(Ok(())).boxed()
    }

    fn move_partition<'a>(
        &'a self,
        _partition: u16,
        _node: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), Problem>> {
        std::future::ready(Ok(())).boxed()
    }

    fn ready(&self) -> Result<(), String> {
        self.not_ready.lock().unwrap().clone().map_or(Ok(()), Err)
    }

    fn status(&self) -> StatusView {
        StatusView {
            version: "0.0.0".to_owned(),
            state: "ready".to_owned(),
            started_at: WireTime(Timestamp::from_millis(0)),
            file: None,
            file_bytes: None,
            storage_free_bytes: None,
            definitions: 1,
            handlers_running: 0,
            blocked: Vec::new(),
            reload_problem: self.reload_problem.clone(),
            environment: None,
            trace_url: None,
            cluster: None,
            clock_step: None,
            fault: None,
        }
    }

    fn metrics(&self) -> BoxFuture<'_, Result<String, Problem>> {
        Box::pin(async { Ok("# EOF\n".to_owned()) })
    }

    fn definitions(&self) -> Vec<DefinitionView> {
        vec![DefinitionView {
            held_back: None,
            queue: "defined".to_owned(),
            file: "workflows/defined.toml".to_owned(),
            handlers: vec!["exec true".to_owned()],
            paused: self.paused.load(Ordering::Relaxed),
            schedules: 1,
            retry_delays: vec![WireDuration(Duration::from_secs(60))],
            redact: Vec::new(),
            source: None,
            loaded_at: WireTime(Timestamp::from_millis(0)),
            problem: None,
        }]
    }

    fn reload_problem(&self) -> Option<String> {
        self.reload_problem.clone()
    }

    fn reload(&self) -> BoxFuture<'_, Result<(), Problem>> {
        Box::pin(async { Ok(()) })
    }

    fn set_paused<'a>(
        &'a self,
        _client: &'a Client,
        queue: &'a QueueName,
        paused: bool,
    ) -> BoxFuture<'a, Result<(), Problem>> {
        Box::pin(async move {
            if queue.as_str() != "defined" {
                return Err(Problem::new("no_handlers", format!("queue {queue} has no handlers")));
            }
            self.paused.store(paused, Ordering::Relaxed);
            Ok(())
        })
    }

    fn is_own(&self, queue: &QueueName) -> bool {
        queue.as_str() == "seriatim.schedules"
    }

    fn too_large(&self, queue: &QueueName) -> Vec<OversizeMessage> {
        let known = self.too_large.lock().unwrap();
        known.iter().filter(|(of, _)| of == queue).map(|(_, message)| *message).collect()
    }

    fn full_window(&self, queue: &QueueName) -> Option<WindowStall> {
        let known = self.full_window.lock().unwrap();
        known.as_ref().filter(|(of, _)| of == queue).map(|(_, window)| *window)
    }

    fn schedules(&self) -> BoxFuture<'_, Result<Vec<ScheduleView>, Problem>> {
        let schedules = vec![ScheduleView {
            queue: "defined".to_owned(),
            name: "nightly".to_owned(),
            cron: "0 2 * * *".to_owned(),
            time_zone: "UTC".to_owned(),
            next: vec![WireTime(Timestamp::from_millis(0))],
            last: None,
        }];
        Box::pin(async { Ok(schedules) })
    }

    fn scheduled_now(&self, _queue: &QueueName, schedule: &str) -> Result<Message, Box<Problem>> {
        match schedule {
            "nightly" => Ok(Message::new("tick")),
            _ => {
                Err(Box::new(Problem::new("schedule_not_found", format!("there is no schedule {schedule}"))))
            }
        }
    }

    fn backup_target(&self, name: &str) -> Result<PathBuf, Misuse> {
        match &self.backups {
            Some(folder) if !name.contains('/') => Ok(folder.join(name)),
            _ => Err(Misuse::new("path", "is outside the folder for backups")),
        }
    }
}

/// A server that runs.
pub(crate) struct Fixture {
    pub(crate) engine: Engine,
    pub(crate) clock: ManualClock,
    pub(crate) address: SocketAddr,
    pub(crate) host: Arc<FakeHost>,
    pub(crate) stopping: CancellationToken,
    pub(crate) ended: JoinHandle<()>,
}

/// What was answered.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answered {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.body)))
    }

    /// The code of a problem, after a look at whether it is one.
    pub(crate) fn code(&self) -> String {
        assert_eq!(self.headers["content-type"], "application/problem+json", "{self:?}");
        let problem = self.json();
        assert_eq!(problem["status"], self.status.as_u16());
        problem["code"].as_str().unwrap().to_owned()
    }
}

impl Fixture {
    pub(crate) async fn open() -> Fixture {
        Fixture::open_with(|_, _| {}).await
    }

    pub(crate) async fn open_with(change: impl FnOnce(&mut ServerOptions, &mut FakeHost)) -> Fixture {
        let (engine, clock) = crate::testing::engine().await.unwrap();
        let mut options = ServerOptions::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        let mut host = FakeHost::default();
        change(&mut options, &mut host);
        let host = Arc::new(host);
        let server = Server::bind(options, engine.client().clone(), Arc::new(FakePlace), host.clone());
        let server = server.await.unwrap();
        let (address, stopping) = (server.address(), CancellationToken::new());
        let ended = tokio::spawn(server.run(stopping.clone()));
        Fixture { engine, clock, address, host, stopping, ended }
    }

    pub(crate) async fn create(&self, name: &str, options: QueueOptions) -> Queue {
        self.engine.client().create_queue(name, options).await.unwrap()
    }

    /// Receives over HTTP, and returns the deliveries.
    pub(crate) async fn receive(&self, queue: &str, request: Value) -> Vec<Value> {
        let received = self.post(&format!("/v1/queues/{queue}/receive"), request).await;
        assert_eq!(received.status, 200, "{received:?}");
        received.json()["deliveries"].as_array().unwrap().clone()
    }

    pub(crate) async fn get(&self, path: &str) -> Answered {
        self.call("GET", path, &[], "").await
    }

    pub(crate) async fn put(&self, path: &str, json: Value) -> Answered {
        self.call("PUT", path, &[("content-type", "application/json")], json.to_string()).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answered {
        self.call("DELETE", path, &[], "").await
    }

    pub(crate) async fn post(&self, path: &str, json: Value) -> Answered {
        self.call("POST", path, &[("content-type", "application/json")], json.to_string()).await
    }

    pub(crate) async fn call(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answered {
        let mut request = Request::builder().method(method).uri(path);
        if !headers.iter().any(|(name, _)| *name == "host") {
            request = request.header("host", self.address.to_string());
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        ask(self.address, request.body(Full::new(body.into())).unwrap()).await
    }
}

/// Asks on a connection of its own.
pub(crate) async fn ask(address: SocketAddr, request: Request<Full<Bytes>>) -> Answered {
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let (parts, body) = sender.send_request(request).await.unwrap().into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    Answered { status: parts.status, headers: parts.headers, body }
}

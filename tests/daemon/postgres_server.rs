//! A PostgreSQL server of a test's own, in a temporary folder, and sessions in it.

use std::net::TcpListener;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::time::Duration;

use seriatim::Clock;
use seriatim::SystemClock;
use tokio::runtime::Runtime;
use tokio_postgres::Client;
use tokio_postgres::NoTls;

use crate::fixture::pause_between_looks;
use crate::fixture::skip::skip;

/// How long a server may take to start.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A server that runs.
pub(crate) struct PostgresServer {
    programs: PathBuf,
    folder: tempfile::TempDir,
    pub(crate) port: u16,
    child: Option<Child>,
}

/// A session of a server.
pub(crate) struct Session {
    runtime: Runtime,
    client: Client,
}

impl PostgresServer {
    /// Starts one with the database `shop`; nothing where PostgreSQL is not installed.
    pub(crate) fn start() -> Option<PostgresServer> {
        let Some(programs) = programs() else {
            skip("messages of a database", "PostgreSQL is not installed");
            return None;
        };
        let folder = tempfile::tempdir().expect("a temporary folder");
        if is_root() {
            // A server refuses to run as root, and another user has to reach its folder.
            let owned = Command::new("chown").arg("postgres").arg(folder.path()).status();
            assert!(owned.expect("chown is everywhere").success());
        }
        let port = free_port();
        let mut server = PostgresServer { programs, folder, port, child: None };
        let data = server.data();
        let made = server
            .program("initdb")
            .args(["--no-sync", "--auth=scram-sha-256", "--username=app", "--encoding=UTF8", "--pwfile"])
            .arg(server.password_file())
            .arg("-D")
            .arg(data)
            .stdout(Stdio::null())
            .status();
        assert!(made.expect("initdb runs").success());
        server.go();
        server.session_in("postgres").run("create database shop");
        Some(server)
    }

    /// The URL of its database.
    pub(crate) fn url(&self) -> String {
        format!("postgres://app@127.0.0.1:{}/shop", self.port)
    }

    /// The file of the password.
    pub(crate) fn password_file(&self) -> PathBuf {
        let path = self.folder.path().join("password");
        if !path.exists() {
            std::fs::write(&path, "a password\n").expect("the folder can be written");
        }
        path
    }

    /// Another session.
    pub(crate) fn session(&self) -> Session {
        self.session_in("shop")
    }

    /// Kills it as a power cut would, and starts it again.
    pub(crate) fn kill_and_go(&mut self) {
        self.end("immediate");
        self.go();
    }

    /// Ends it.
    pub(crate) fn end(&mut self, how: &str) {
        let data = self.data();
        let ended =
            self.program("pg_ctl").args(["stop", "-m", how, "-D"]).arg(data).stdout(Stdio::null()).status();
        ended.expect("pg_ctl runs");
        if let Some(mut child) = self.child.take() {
            child.wait().expect("it is a child");
        }
    }

    /// Starts it, and waits until it answers.
    pub(crate) fn go(&mut self) {
        let (data, port) = (self.data(), self.port.to_string());
        let socket = format!("unix_socket_directories={}", self.folder.path().display());
        let child = self
            .program("postgres")
            .arg("-D")
            .arg(data)
            .args(["-p", &port, "-c", "listen_addresses=127.0.0.1", "-c", &socket, "-c", "fsync=off"])
            .args(["-c", "max_prepared_transactions=4"])
            .stderr(Stdio::null())
            .spawn();
        self.child = Some(child.expect("postgres runs"));
        let clock = SystemClock::default();
        while Session::open(self.port, "postgres").is_none() {
            assert!(clock.elapsed() < TIMEOUT, "the server does not answer");
            pause_between_looks();
        }
    }

    fn session_in(&self, database: &str) -> Session {
        Session::open(self.port, database).expect("the server runs")
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// One of its programs, as a user whom it accepts.
    fn program(&self, name: &str) -> Command {
        let program = self.programs.join(name);
        let mut command = match is_root() {
            true => {
                let mut command = Command::new("setpriv");
                command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]).arg(program);
                command
            }
            false => Command::new(program),
        };
        command.current_dir(self.folder.path()).env("LC_ALL", "C");
        command
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.end("immediate");
    }
}

impl Session {
    fn open(port: u16, database: &str) -> Option<Session> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let url = format!("postgres://app:a%20password@127.0.0.1:{port}/{database}");
        let (client, connection) = runtime.block_on(tokio_postgres::connect(&url, NoTls)).ok()?;
        runtime.spawn(connection);
        Some(Session { runtime, client })
    }

    /// Runs statements.
    pub(crate) fn run(&self, statements: &str) {
        let ran = self.runtime.block_on(self.client.batch_execute(statements));
        ran.unwrap_or_else(|error| panic!("{statements}: {error:?}"));
    }

    /// The one number that a query gives.
    pub(crate) fn number(&self, query: &str) -> i64 {
        let row = self.runtime.block_on(self.client.query_one(query, &[]));
        row.unwrap_or_else(|error| panic!("{query}: {error:?}")).get(0)
    }
}

/// Where PostgreSQL's programs are: as Debian installs them, or on the path.
fn programs() -> Option<PathBuf> {
    let installed = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = installed.map(|version| version.path().join("bin")).collect();
    let path = std::env::var_os("PATH").unwrap_or_default();
    folders.extend(std::env::split_paths(&path));
    folders.into_iter().find(|folder| folder.join("initdb").is_file() && folder.join("postgres").is_file())
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    listener.local_addr().expect("it is bound").port()
}

/// Writes the password into a file of the folder of definitions.
pub(crate) fn write_password(folder: &Path) {
    std::fs::write(folder.join("workflows/database.password"), "a password\n")
        .expect("the folder can be written");
}

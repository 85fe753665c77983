//! Runs what a page shows: definitions, keys, Python, and commands against a daemon.

use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::process::Stdio;

use crate::fixture::daemon_process::ANYWHERE;
use crate::fixture::daemon_process::DaemonProcess;
use crate::fixture::daemon_process::daemon_command;
use crate::snippets::page::Snippet;

const BINARY: &str = env!("CARGO_BIN_EXE_seriatim");

/// A secret and a key of the right form, for those that definitions point at.
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// How the command line says that a message is stored.
const ACCEPTED: &str = "accepted as ";

/// Files that definitions name: what they forward to, and the scripts they run.
const FILES: [&str; 7] =
    ["invoices.toml", "orders.py", "paid.py", "page.sh", "thumbnail.py", "index.py", "nightly.py"];

/// Reads a definition as the daemon does.
pub(crate) fn check_definition(place: &str, text: &str) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for file in FILES {
        std::fs::write(folder.path().join(file), "").expect("the folder can be written");
    }
    std::fs::write(folder.path().join("example.toml"), text).expect("the folder can be written");
    let mut command = Command::new(BINARY);
    command.arg("check").arg(folder.path());
    for name in text.lines().filter_map(|line| line.split_once("_env = \"")?.1.split('"').next()) {
        command.env(name, SECRET);
    }
    let output = command.output().expect("the binary runs");
    assert!(output.status.success(), "{place}: {}", String::from_utf8_lossy(&output.stdout));
}

/// Starts a daemon with a file of keys.
pub(crate) fn try_keys(place: &str, text: &str) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let keys = folder.path().join("keys.toml");
    std::fs::write(&keys, text).expect("the folder can be written");
    let workflows = folder.path().join("workflows");
    std::fs::create_dir(&workflows).expect("a folder");
    let mut command = daemon_command(folder.path(), ANYWHERE);
    let daemon = DaemonProcess::start(command.arg("--keys").arg(&keys).stderr(Stdio::null()));
    assert!(daemon.address("http").is_some(), "{place}: the file of keys is refused");
}

/// Compiles a Python program and does not run it.
pub(crate) fn compile_python(place: &str, text: &str) {
    let mut command = Command::new("python3");
    command.args(["-c", "import sys; compile(sys.stdin.read(), 'snippet', 'exec')"]);
    let mut child = command.stdin(Stdio::piped()).spawn().expect("python3 is installed");
    child.stdin.take().expect("it is piped").write_all(text.as_bytes()).expect("it reads");
    assert!(child.wait().expect("it ends").success(), "{place}: it is no Python");
}

/// A daemon, and what one page's commands have said so far.
pub(crate) struct Runner {
    daemon: Option<DaemonProcess>,
    address: String,
    folder: tempfile::TempDir,
    page: String,
    /// Commands that later ones of the page stand on: variables and functions.
    settings: String,
    /// The last delivery that was handed out.
    delivery: String,
    pub(crate) commands: usize,
}

impl Runner {
    pub(crate) fn start() -> Runner {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (page, settings, delivery) = (String::new(), String::new(), String::new());
        Runner { daemon: None, address: String::new(), folder, page, settings, delivery, commands: 0 }
    }

    /// Runs the commands of a snippet; each page has a daemon of its own: the demonstration for the README, else an empty one.
    pub(crate) fn run(&mut self, snippet: &Snippet) {
        if self.page != snippet.page {
            self.begin(&snippet.page);
        }
        for step in steps(&snippet.text) {
            self.step(&snippet.place, &step);
        }
    }

    fn begin(&mut self, page: &str) {
        self.daemon = None;
        (self.page, self.settings) = (page.to_owned(), String::new());
        let mut command = Command::new(BINARY);
        command
            .args(["dev", "--http", ANYWHERE, "--json"])
            .stderr(Stdio::null())
            .current_dir(self.folder.path());
        if page != "README.md" {
            let workflows = self.folder.path().join("workflows");
            std::fs::create_dir_all(&workflows).expect("a folder");
            command.arg(workflows);
        }
        let daemon = DaemonProcess::start(&mut command);
        self.address = daemon.address("http").unwrap_or_else(|| panic!("{page}: an address"));
        self.daemon = Some(daemon);
    }

    fn step(&mut self, place: &str, step: &Step) {
        let Step { command, shows_problem, shows_accepted } = step;
        // The daemon runs already.
        if command.contains("seriatim dev") {
            return;
        }
        let command = self.filled_in(command);
        if ["url=", "post()"].iter().any(|begin| command.starts_with(begin)) {
            self.settings.push_str(&format!("{command}\n"));
            return;
        }
        let mut shell = Command::new("bash");
        let binaries = Path::new(BINARY).parent().expect("a folder");
        let path = std::env::var("PATH").unwrap_or_default();
        shell.env("PATH", format!("{}:{path}", binaries.display()));
        shell.env("SERIATIM_URL", format!("http://{}", self.address)).current_dir(self.folder.path());
        let output =
            shell.arg("-c").arg(format!("{}{command}", self.settings)).output().expect("bash is there");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        // Who listens to events is ended by time.
        let is_listening = command.contains("--max-time");
        assert!(output.status.success() || is_listening, "{place}: {command}\n{output:?}");
        let code = said.split("urn:seriatim:problem:").nth(1).and_then(|rest| rest.split('"').next());
        let is_absence = code.is_none_or(|code| code.ends_with("_not_found"));
        assert!(is_absence || *shows_problem, "{place}: {command}\n{said}");
        assert!(!shows_accepted || said.contains(ACCEPTED), "{place}: {command}\n{said}");
        if let Some(id) = said.split("\"delivery\":\"").nth(1).and_then(|rest| rest.split('"').next()) {
            id.clone_into(&mut self.delivery);
        }
        self.commands += 1;
    }

    /// Puts what this daemon has in the place of what stands for it on the page.
    fn filled_in(&self, command: &str) -> String {
        let command =
            command.replace("127.0.0.1:7700", &self.address).replace("target/release/seriatim", "seriatim");
        let command = command.replace("curl -sN", "curl -sN --max-time 1");
        let Some((before, after)) = command.split_once("/deliveries/") else { return command };
        let rest = after.split_once('/').map_or("", |(_, rest)| rest);
        format!("{before}/deliveries/{}/{rest}", self.delivery)
    }
}

/// A command, and whether the page shows that it is refused, or that its message is accepted.
struct Step {
    command: String,
    shows_problem: bool,
    shows_accepted: bool,
}

fn steps(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut goes_on = false;
    for line in text.lines() {
        let is_begun = line.strip_prefix("$ ");
        match (is_begun, steps.last_mut()) {
            (Some(command), _) => {
                let command = command.to_owned();
                steps.push(Step { command, shows_problem: false, shows_accepted: false });
            }
            (None, Some(step)) if goes_on => step.command.push_str(&format!("\n{line}")),
            (None, Some(step)) => {
                step.shows_problem |= line.contains("problem:");
                step.shows_accepted |= line.starts_with(ACCEPTED);
            }
            (None, None) => {}
        }
        goes_on = (is_begun.is_some() || goes_on) && line.ends_with(['\\', '|']);
    }
    steps
}

//! Hears what a child and its children write into a named pipe, and when the last of them is gone.

use std::fs::File;
use std::io::BufRead;
use std::io::BufReader;
use std::path::Path;

use tokio::sync::mpsc;

use crate::handlers::tests::stage::LONG;

/// A named pipe. Whoever holds it open for writing is alive: when the last one dies, it ends.
pub(super) struct NamedPipe {
    lines: mpsc::UnboundedReceiver<String>,
}

impl NamedPipe {
    /// Makes the pipe, and listens in a thread: opening it waits for the first who writes.
    pub(super) fn new(path: &Path) -> NamedPipe {
        assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
        let (said_line, lines) = mpsc::unbounded_channel();
        let path = path.to_owned();
        let listen = move || {
            let Ok(pipe) = File::open(path) else { return };
            BufReader::new(pipe).lines().map_while(Result::ok).for_each(|line| drop(said_line.send(line)));
        };
        std::thread::Builder::new().name("pipe".to_owned()).spawn(listen).unwrap();
        NamedPipe { lines }
    }

    /// The next line; none when all who could write are dead.
    pub(super) async fn next_line(&mut self) -> Option<String> {
        tokio::time::timeout(LONG, self.lines.recv()).await.expect("somebody writes, or dies")
    }
}

//! What a definition says of a handler.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use crate::id::QueueName;

/// What handles the messages of one subject, or of every subject that has no handler.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HandlerDefinition {
    /// The subject, exactly; `None` for every other subject.
    pub subject: Option<String>,
    /// How long one attempt may take.
    pub timeout: Duration,
    /// What is done with a message.
    pub spec: HandlerSpec,
}

/// What a handler does with a message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HandlerSpec {
    /// Starts a program for each message.
    Exec(Program),
    /// Hands it to a program that runs on.
    Persistent {
        /// The program.
        program: Program,
        /// How many processes of it run at once.
        processes: usize,
    },
    /// Posts it to a URL.
    Http(Webhook),
    /// Sends it to another queue.
    Forward(Target),
}

impl HandlerSpec {
    /// Its name in a definition.
    pub const fn kind(&self) -> &'static str {
        match self {
            HandlerSpec::Exec(_) => "exec",
            HandlerSpec::Persistent { .. } => "persistent",
            HandlerSpec::Http(_) => "http",
            HandlerSpec::Forward(_) => "forward",
        }
    }
}

/// A program to start.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Program {
    /// The program's file, found when the definition was read.
    pub path: PathBuf,
    /// Its name and arguments, as they are written.
    pub argv: Vec<String>,
    /// The folder it starts in: that of the definition.
    pub folder: PathBuf,
    /// Environment variables it gets.
    pub env: BTreeMap<String, String>,
    /// Names of environment variables of the daemon that it gets too.
    pub pass_env: Vec<String>,
    /// Most bytes of output that are read of one attempt.
    pub output_bytes_max: usize,
}

/// A URL to post to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Webhook {
    /// The URL.
    pub url: String,
    /// Where the secret is with which posts are signed.
    pub secret: Option<Secret>,
    /// Whether the URL may lead to a private address.
    pub allow_private: bool,
}

/// Where messages are forwarded to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Target {
    /// Another queue of the same engine.
    Queue(QueueName),
    /// A queue of another daemon.
    Remote {
        /// The daemon's address, as `http://host:port`, and what stands before the queue in the path.
        base: String,
        /// The queue there.
        queue: QueueName,
        /// Where the key for the other daemon is.
        key: Option<Secret>,
    },
}

/// Where something secret is. It is read when it is needed, so that it can be changed, and is never in a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Secret {
    /// In this file.
    File(PathBuf),
    /// In this environment variable of the daemon.
    Env(String),
}

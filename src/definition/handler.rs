//! What a definition says of a handler.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::definition::credential_digest::CredentialDigest;
use crate::id::QueueName;
use crate::rate::Rate;

/// What handles the messages of one subject, or of every subject that has no handler.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HandlerDefinition {
    /// The subject, exactly; `None` for every other subject.
    pub subject: Option<String>,
    /// How long one attempt may take.
    pub timeout: Duration,
    /// How many messages it is handed at most in a span of time.
    pub rate: Option<Rate>,
    /// What is done with a message.
    pub spec: HandlerSpec,
    /// What its secret, key and authorities were when the definition was read.
    pub credentials: CredentialDigest,
}

/// What a handler does with a message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HandlerSpec {
    /// Starts a program for each message.
    Exec {
        /// The program.
        program: ProgramDefinition,
        /// How many bytes of the end of each output are kept of one attempt.
        output_bytes_max: usize,
    },
    /// Hands it to a program that runs on.
    Persistent {
        /// The program.
        program: ProgramDefinition,
        /// How many processes of it run at once.
        processes: usize,
        /// How many messages one process may hold at once.
        in_flight_max: usize,
    },
    /// Posts it to a URL.
    Http {
        /// Where to.
        address: WebhookDefinition,
        /// Where the secrets are with which posts are signed.
        secret: Option<SecretSource>,
    },
    /// Sends it to another queue.
    Forward {
        /// Which queue.
        target: ForwardTarget,
        /// Whether it keeps its position.
        keep_position: bool,
    },
}

impl HandlerSpec {
    /// Its name in a definition.
    pub const fn kind(&self) -> &'static str {
        match self {
            HandlerSpec::Exec { .. } => "exec",
            HandlerSpec::Persistent { .. } => "persistent",
            HandlerSpec::Http { .. } => "http",
            HandlerSpec::Forward { .. } => "forward",
        }
    }
}

impl fmt::Display for HandlerSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.kind())?;
        match self {
            HandlerSpec::Exec { program, .. } => f.write_str(&program.argv.join(" ")),
            HandlerSpec::Persistent { program, processes, .. } => {
                let plural = if *processes == 1 { "" } else { "es" };
                write!(f, "{}, {processes} process{plural}", program.argv.join(" "))
            }
            HandlerSpec::Http { address, .. } => f.write_str(&address.url),
            HandlerSpec::Forward { target: ForwardTarget::Queue(queue), .. } => queue.fmt(f),
            HandlerSpec::Forward { target: ForwardTarget::Remote { address, .. }, .. } => {
                f.write_str(&address.url)
            }
        }
    }
}

/// A program to start.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProgramDefinition {
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
}

/// An address to post to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WebhookDefinition {
    /// The URL.
    pub url: String,
    /// Whether it may lead to a private address.
    pub allow_private: bool,
    /// The PEM file of the authorities that are trusted, instead of the public ones.
    pub ca_file: Option<PathBuf>,
}

/// Where messages are forwarded to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ForwardTarget {
    /// Another queue of the same engine.
    Queue(QueueName),
    /// A queue of another daemon.
    Remote {
        /// The queue, as `http://host:7700/queue`.
        address: WebhookDefinition,
        /// Where the key for the other daemon is.
        key: Option<SecretSource>,
    },
}

/// Where something secret is. It is never in a definition: it is read when a definition is put in force, which it is again with
/// the next reload after it was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretSource {
    /// In this file.
    File(PathBuf),
    /// In this environment variable of the daemon.
    Env(String),
}

//! Where the daemon is, and how its answers are printed.

use std::path::PathBuf;

use clap::Args;
use clap::builder::OsStringValueParser;
use clap::builder::TypedValueParser;

/// Arguments of every verb that talks to a daemon.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Daemon")]
pub(crate) struct DaemonArguments {
    /// Where the daemon is. Without it, where one listens that has the settings of this environment (SERIATIM_HTTP,
    /// SERIATIM_TLS_CERTIFICATE), which is http://127.0.0.1:7700 without any.
    #[arg(long, global = true, env = "SERIATIM_URL")]
    pub(crate) url: Option<String>,
    /// File that holds the key. Without it, SERIATIM_KEY holds the key, or SERIATIM_KEY_FILE names the file.
    #[arg(long, global = true)]
    pub(crate) key_file: Option<PathBuf>,
    /// PEM file of the certificates that are trusted, instead of those of the web.
    #[arg(long, global = true, env = "SERIATIM_CA_FILE", value_parser = OsStringValueParser::new().map(PathBuf::from))]
    pub(crate) ca_file: Option<PathBuf>,
    /// Print lines of JSON: one for each row, or one with the answer.
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

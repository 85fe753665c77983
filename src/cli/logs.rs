//! Where the daemon's log goes: stderr, for a person or as lines of JSON.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

/// Lets the log begin. `SERIATIM_LOG` chooses what is in it, as `info` or `seriatim=debug`.
pub(crate) fn start(json: bool) {
    let filter = EnvFilter::try_from_env("SERIATIM_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    // Colours are for a terminal, and for one that wants them.
    let colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(colours);
    let log = log.with_writer(std::io::stderr);
    match json {
        true => log.json().flatten_event(true).init(),
        false => log.with_target(false).init(),
    }
}

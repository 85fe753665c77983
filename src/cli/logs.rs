//! Where the daemon's log goes: stderr, for a person or as lines of JSON; and, if it is built so, spans to a collector.

use std::io::IsTerminal;

use seriatim::daemon::ASSIGNMENT_SPANS;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::cli::failure::CliFailure;
#[cfg(feature = "otlp")]
use crate::cli::spans;
#[cfg(feature = "otlp")]
use crate::cli::spans::Spans;

/// The log. Dropped, it sends on what is left of it.
pub(crate) struct Logs {
    #[cfg(feature = "otlp")]
    _spans: Option<Spans>,
}

/// Lets the log begin. `SERIATIM_LOG` chooses what is in it, as `info` or `seriatim=debug`.
pub(crate) fn start(json: bool) -> Result<Logs, CliFailure> {
    let chosen = std::env::var("SERIATIM_LOG").ok().and_then(|text| text.parse().ok());
    let filter: Targets = chosen.unwrap_or_else(|| Targets::new().with_default(LevelFilter::INFO));
    // Colours are for a terminal, and for one that wants them.
    let colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let lines = tracing_subscriber::fmt::layer().with_ansi(colours).with_writer(std::io::stderr);
    let lines = match json {
        true => lines.json().flatten_event(true).boxed(),
        false => lines.with_target(false).boxed(),
    };
    // Most of what a span costs is its text, and there is one for each message.
    let filter = filter.with_target(ASSIGNMENT_SPANS, LevelFilter::OFF);
    let log = tracing_subscriber::registry().with(lines.with_filter(filter));
    #[cfg(feature = "otlp")]
    {
        let (layer, spans) = spans::export()?.unzip();
        log.with(layer).init();
        Ok(Logs { _spans: spans })
    }
    #[cfg(not(feature = "otlp"))]
    {
        log.init();
        Ok(Logs {})
    }
}

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
    let filter = filter(std::env::var("SERIATIM_LOG").ok().as_deref());
    // Colours are for a terminal, and for one that wants them.
    let colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let lines = tracing_subscriber::fmt::layer().with_ansi(colours).with_writer(std::io::stderr);
    let lines = match json {
        true => lines.json().flatten_event(true).boxed(),
        false => lines.with_target(false).boxed(),
    };
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

/// What the log has: levels by target, or `info` when nothing is given that can be read.
fn filter(given: Option<&str>) -> Targets {
    let chosen = given.and_then(|text| text.parse::<Targets>().ok());
    let chosen = chosen.unwrap_or_else(|| Targets::new().with_default(LevelFilter::INFO));
    // Most of what a span costs is its text, and there is one for each message.
    chosen.with_target(ASSIGNMENT_SPANS, LevelFilter::OFF)
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn the_log_is_chosen_by_level_and_target_and_is_info_without() {
        let logs = |given, target, level| filter(given).would_enable(target, &level);
        for without in [None, Some("seriatim[span]=loud")] {
            assert!(logs(without, "seriatim::daemon", Level::INFO));
            assert!(!logs(without, "seriatim::daemon", Level::DEBUG));
        }
        assert!(!logs(Some("warn"), "seriatim::daemon", Level::INFO));
        assert!(logs(Some("seriatim=debug"), "seriatim::daemon", Level::DEBUG));
        assert!(!logs(Some("seriatim=debug"), "hyper", Level::INFO));
        assert!(!logs(Some("trace"), ASSIGNMENT_SPANS, Level::INFO));
    }
}

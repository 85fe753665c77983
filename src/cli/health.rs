//! `seriatim health`: one request, for whoever restarts a daemon that does not answer.

use serde_json::json;

use crate::cli::arguments::daemon::DaemonArguments;
use crate::cli::connect::connect;
use crate::cli::failure::CliFailure;
use crate::cli::out::Stdout;

/// Asks whether a daemon answers and its store works. It needs no key.
pub(crate) async fn run(arguments: DaemonArguments) -> Result<bool, CliFailure> {
    let remote = connect(&arguments)?;
    let out = Stdout::new(arguments.json);
    remote.health().await.map_err(CliFailure::to("find the daemon healthy"))?;
    out.json(&json!({ "url": remote.url(), "healthy": true }))?;
    out.say(format!("{} answers, and its store works", remote.url()))?;
    Ok(true)
}

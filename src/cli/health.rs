//! `seriatim health`: one request, for whoever restarts a daemon that does not answer.

use serde_json::json;

use crate::cli::arguments::look::HealthArguments;
use crate::cli::connect::connect;
use crate::cli::failure::CliFailure;
use crate::cli::out::Stdout;

/// Asks whether a daemon answers and its store works. It needs no key.
pub(crate) async fn run(arguments: HealthArguments) -> Result<bool, CliFailure> {
    let remote = connect(&arguments.daemon)?;
    let out = Stdout::new(arguments.daemon.json);
    remote.health().await.map_err(CliFailure::to("find the daemon healthy"))?;
    out.json(&json!({ "url": remote.url(), "healthy": true }))?;
    out.say(format!("{} answers, and its store works", remote.url()))?;
    Ok(true)
}

//! Where `top` begins: a screen for a person at a terminal, one snapshot for everybody else.

use std::io;
use std::io::IsTerminal;

use crate::cli::arguments::look::TopArguments;
use crate::cli::connect::connect;
use crate::cli::failure::Failure;
use crate::cli::moment::Present;
use crate::cli::out::Out;
use crate::cli::top::snapshot::Snapshot;
use crate::cli::top::state::State;
use crate::cli::top::terminal;

/// Shows the overview until somebody quits, or prints it once.
pub(crate) async fn run(arguments: TopArguments) -> Result<bool, Failure> {
    let remote = connect(&arguments.daemon)?;
    let out = Out::new(arguments.daemon.json);
    let snapshot = Snapshot::take(&remote).await?;
    let is_watched = io::stdin().is_terminal() && io::stdout().is_terminal();
    if arguments.daemon.json || !is_watched {
        out.json(&snapshot)?;
        out.say(snapshot.describe(&Present::here()))?;
        return Ok(true);
    }
    terminal::show(&remote, State::new(arguments.daemon.url, snapshot)).await?;
    Ok(true)
}

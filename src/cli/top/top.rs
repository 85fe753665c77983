//! Where `top` begins: a screen for a person at a terminal, one snapshot for everybody else.

use std::io;
use std::io::IsTerminal;

use crate::cli::arguments::daemon::DaemonArguments;
use crate::cli::connect::connect;
use crate::cli::failure::CliFailure;
use crate::cli::moment::LocalTime;
use crate::cli::out::Stdout;
use crate::cli::top::snapshot::DaemonSnapshot;
use crate::cli::top::state::TopState;
use crate::cli::top::terminal;

/// Shows the overview until somebody quits, or prints it once.
pub(crate) async fn run(arguments: DaemonArguments) -> Result<bool, CliFailure> {
    let remote = connect(&arguments)?;
    let out = Stdout::new(arguments.json);
    let snapshot = DaemonSnapshot::take(&remote).await?;
    let is_watched = io::stdin().is_terminal() && io::stdout().is_terminal();
    if arguments.json || !is_watched {
        out.json(&snapshot)?;
        out.say(snapshot.describe(&LocalTime::here()))?;
        return Ok(true);
    }
    terminal::show(&remote, TopState::new(remote.url().to_owned(), snapshot)).await?;
    Ok(true)
}

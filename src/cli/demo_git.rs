//! `seriatim demo git`.

use crate::bench::folder::Folder;
use crate::cli::arguments::demo::GitArguments;
use crate::cli::arguments::demo::GitEngineArguments;
use crate::cli::arguments::demo::Mode;
use crate::cli::failure::CliFailure;
use crate::cli::logs;
use crate::demo::replay::EnginePlan;
use crate::demo::replay::Handling;
use crate::demo::replay::NodePlan;
use crate::demo::replay::ReplayError;
use crate::demo::replay::ReplayPlan;
use crate::demo::replay::replay;
use crate::demo::replay::run_engine_process;

/// Replays a history; true when every promise was kept.
pub(crate) fn run(arguments: GitArguments) -> Result<bool, CliFailure> {
    let mode = match (arguments.no_reorder, arguments.retry_at_back) {
        (true, _) => Mode::NoReorder,
        (_, true) => Mode::RetryAtBack,
        _ => Mode::Ordered,
    };
    let temporary;
    let data = match arguments.data {
        Some(data) => data,
        None => {
            temporary = Folder::make_for("demo", None)?;
            temporary.path().to_owned()
        }
    };
    Ok(replay(&ReplayPlan {
        repository: arguments.repository,
        failures: arguments.failures,
        crashes: arguments.crashes,
        seed: arguments.seed,
        data,
        json: arguments.json,
        mode: mode.name(),
        handling: handling(mode),
        cluster: arguments.cluster,
    })?)
}

/// The engine's process of a replay, which is a node of a cluster if it is given a name.
pub(crate) fn run_engine(arguments: &GitEngineArguments) -> Result<bool, ReplayError> {
    // A node says more than a person wants to see; whoever asks for it gets it.
    let _logs = std::env::var_os("SERIATIM_LOG").and_then(|_| logs::start(false).ok());
    run_engine_process(EnginePlan {
        repository: arguments.repository.clone(),
        head: arguments.head.clone(),
        data: arguments.data.clone(),
        failures: arguments.failures,
        seed: arguments.seed,
        handling: handling(arguments.mode),
        node: arguments.node.clone().map(|name| NodePlan {
            name,
            nats: arguments.nats.clone(),
            feeds: arguments.feeds,
        }),
    })?;
    Ok(true)
}

fn handling(mode: Mode) -> Handling {
    match mode {
        Mode::Ordered => Handling::Ordered,
        Mode::NoReorder => Handling::AsTheyArrive,
        Mode::RetryAtBack => Handling::RetryAtBack,
    }
}

//! From what a definition says of its handlers to handlers that run.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::Clock;
use crate::daemon::home::Home;
use crate::definition::Definition;
use crate::definition::HandlerDefinition;
use crate::definition::HandlerSpec;
use crate::definition::Program;
use crate::error::Misuse;
use crate::handlers::AnyHandler;
use crate::handlers::Dispatch;
use crate::handlers::Exec;
use crate::handlers::ExecOptions;
use crate::handlers::Persistent;
use crate::handlers::PersistentOptions;
use crate::handlers::Site;
use crate::intake::Intake;
use crate::queue::Order;

/// The handlers of a definition, by subject.
pub(crate) fn dispatch_of(
    definition: &Definition,
    home: &Home,
    intake: &Intake,
    clock: &Arc<dyn Clock>,
) -> Result<Dispatch, Misuse> {
    let intake = intake.clone();
    let site = Site {
        store_id: home.store_id().to_owned(),
        by_position: matches!(definition.options.order, Order::Position { .. }),
        place: Arc::new(move |queue, message| intake.place(queue, message)),
        clock: clock.clone(),
    };
    let mut dispatch = Dispatch::default();
    for handler in &definition.handlers {
        let started = handler_of(handler, definition.concurrency, &site)?;
        dispatch = dispatch.with(handler.subject.clone(), started);
    }
    Ok(dispatch)
}

fn handler_of(handler: &HandlerDefinition, concurrency: usize, site: &Site) -> Result<AnyHandler, Misuse> {
    Ok(match &handler.spec {
        HandlerSpec::Exec(program) => {
            AnyHandler::Exec(Exec::new(exec_options(program, handler.timeout), site.clone()))
        }
        HandlerSpec::Persistent { program, processes, in_flight_max } => {
            let options = PersistentOptions {
                argv: program.argv.clone(),
                cwd: program.folder.clone(),
                env: program.env.clone(),
                pass_env: program.pass_env.clone(),
                processes: *processes,
                in_flight_max: in_flight_max.unwrap_or_else(|| concurrency.div_ceil(*processes)),
                timeout: handler.timeout,
            };
            AnyHandler::Persistent(Persistent::start(options, site.clone()))
        }
        HandlerSpec::Http { .. } | HandlerSpec::Forward { .. } => {
            return Err(Misuse::new("handler", "of this kind cannot run yet"));
        }
    })
}

pub(crate) fn exec_options(program: &Program, timeout: Duration) -> ExecOptions {
    ExecOptions {
        argv: program.argv.clone(),
        cwd: PathBuf::clone(&program.folder),
        env: program.env.clone(),
        pass_env: program.pass_env.clone(),
        timeout,
        output_bytes_max: program.output_bytes_max,
    }
}

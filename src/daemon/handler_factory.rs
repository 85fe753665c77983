//! From what a definition says of its handlers to handlers that run.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::Clock;
use crate::daemon::data_dir::DataDir;
use crate::definition::Definition;
use crate::definition::ForwardTarget;
use crate::definition::HandlerDefinition;
use crate::definition::HandlerSpec;
use crate::definition::Notice;
use crate::definition::NotifyDefinition;
use crate::definition::SecretSource;
use crate::definition::WebhookDefinition;
use crate::error::Misuse;
use crate::handlers::AnyHandler;
use crate::handlers::Dispatch;
use crate::handlers::Exec;
use crate::handlers::ExecOptions;
use crate::handlers::Forward;
use crate::handlers::ForwardOptions;
use crate::handlers::ForwardTo;
use crate::handlers::Notifier;
use crate::handlers::OutboundOptions;
use crate::handlers::Persistent;
use crate::handlers::PersistentOptions;
use crate::handlers::RemoteQueue;
use crate::handlers::SigningSecret;
use crate::handlers::Site;
use crate::handlers::Webhook;
use crate::handlers::WebhookOptions;
use crate::intake::Intake;
use crate::limits;
use crate::queue::Order;

/// The handlers of a definition, by subject.
pub(crate) fn dispatch_of(definition: &Definition, site: &Site) -> Result<Dispatch, Misuse> {
    let mut dispatch = Dispatch::default();
    let lives = |handler: &&HandlerDefinition| matches!(handler.spec, HandlerSpec::Persistent { .. });
    let (living, others): (Vec<_>, Vec<_>) = definition.handlers.iter().partition(lives);
    // Programs that live on start at once, and last within their definition: another handler that cannot be made would end them.
    for handler in others.into_iter().chain(living) {
        dispatch = dispatch.with(handler.subject.clone(), handler_of(handler, site)?);
        if let Some(rate) = handler.rate {
            dispatch = dispatch.paced(rate, site.clock.elapsed());
        }
    }
    Ok(dispatch)
}

/// Where the handlers of a definition run.
pub(crate) fn site_of(
    definition: &Definition,
    data_dir: &DataDir,
    intake: &Intake,
    clock: &Arc<dyn Clock>,
) -> Site {
    let intake = intake.clone();
    Site {
        queue: definition.name.clone(),
        store_id: data_dir.state_file().store_id(),
        sender_id: data_dir.sender_id(),
        by_position: matches!(definition.options.order, Order::Position { .. }),
        place: Arc::new(move |queue, message| intake.place(queue, message)),
        clock: clock.clone(),
    }
}

fn handler_of(handler: &HandlerDefinition, site: &Site) -> Result<AnyHandler, Misuse> {
    let timeout = handler.timeout;
    Ok(match &handler.spec {
        HandlerSpec::Exec { program, output_bytes_max } => {
            let (program, output_bytes_max) = (program.clone(), *output_bytes_max);
            AnyHandler::Exec(Exec::new(ExecOptions { program, timeout, output_bytes_max }, site.clone()))
        }
        HandlerSpec::Persistent { program, processes, in_flight_max } => {
            let options = PersistentOptions {
                program: program.clone(),
                processes: *processes,
                in_flight_max: *in_flight_max,
                timeout,
            };
            AnyHandler::Persistent(Persistent::start(options, site.clone()))
        }
        HandlerSpec::Http { address, secret } => {
            AnyHandler::Webhook(webhook(address, secret.as_ref(), timeout, site)?)
        }
        HandlerSpec::Forward { target, keep_position } => {
            let to = match target {
                ForwardTarget::Queue(queue) => ForwardTo::Local(queue.clone()),
                ForwardTarget::Remote { address, key } => ForwardTo::Remote(RemoteQueue {
                    outbound: OutboundOptions { address: address.clone(), timeout },
                    key: key.as_ref().map(|key| key.read("key")).transpose()?,
                }),
            };
            let options = ForwardOptions { to, keep_position: *keep_position };
            AnyHandler::Forward(Forward::new(options, site.clone())?)
        }
    })
}

/// Whom a definition notifies of a blocked workflow.
pub(crate) fn notifier_of(notify: &NotifyDefinition, site: &Site) -> Result<Notifier, Misuse> {
    Ok(match &notify.by {
        Notice::Exec(program) => {
            let (program, output_bytes_max) = (program.clone(), limits::OUTPUT_BYTES_MAX);
            let options = ExecOptions { program, timeout: notify.timeout, output_bytes_max };
            Notifier::Exec(Exec::new(options, site.clone()))
        }
        Notice::Http { address, secret } => {
            Notifier::Webhook(webhook(address, secret.as_ref(), notify.timeout, site)?)
        }
    })
}

fn webhook(
    address: &WebhookDefinition,
    secret: Option<&SecretSource>,
    timeout: Duration,
    site: &Site,
) -> Result<Webhook, Misuse> {
    let secrets = match secret {
        Some(secret) => secret.read("secret")?.lines().map(SigningSecret::parse).collect::<Result<_, _>>()?,
        None => Vec::new(),
    };
    Webhook::new(
        WebhookOptions { outbound: OutboundOptions { address: address.clone(), timeout }, secrets },
        site.clone(),
    )
}

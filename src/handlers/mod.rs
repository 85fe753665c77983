//! Ready-made handlers: programs, webhooks, other queues.

mod answer;
mod beside;
mod dispatch;
mod ending;
mod exec;
mod facts;
mod fence;
mod forward;
mod group;
mod handler_program;
#[cfg(target_os = "linux")]
mod marked_processes;
mod notice;
mod outbound;
mod output;
mod persistent;
mod program;
mod shortage;
mod site;
#[cfg(feature = "otlp")]
mod span;
mod tail;
#[cfg(test)]
mod tests;
mod trace;
mod variables;
mod webhook;

pub(crate) use crate::handlers::dispatch::AnyHandler;
pub(crate) use crate::handlers::dispatch::Dispatch;
pub(crate) use crate::handlers::dispatch::DispatchPause;
pub(crate) use crate::handlers::exec::Exec;
pub(crate) use crate::handlers::exec::ExecOptions;
pub(crate) use crate::handlers::fence::Survivors;
pub(crate) use crate::handlers::fence::fence;
pub(crate) use crate::handlers::forward::Forward;
pub(crate) use crate::handlers::forward::ForwardOptions;
pub(crate) use crate::handlers::forward::ForwardTo;
pub(crate) use crate::handlers::forward::RemoteQueue;
pub(crate) use crate::handlers::notice::Notifier;
pub(crate) use crate::handlers::outbound::outbound::OutboundOptions;
pub(crate) use crate::handlers::outbound::signature::SigningSecret;
pub(crate) use crate::handlers::persistent::Persistent;
pub(crate) use crate::handlers::persistent::PersistentOptions;
pub(crate) use crate::handlers::site::Site;
#[cfg(feature = "otlp")]
pub(crate) use crate::handlers::span::continue_sender;
pub(crate) use crate::handlers::webhook::Webhook;
pub(crate) use crate::handlers::webhook::WebhookOptions;

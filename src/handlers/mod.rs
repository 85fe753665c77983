//! Ready-made handlers: programs, webhooks, other queues.

mod answer;
mod dispatch;
mod exec;
mod group;
mod persistent;
mod program;
mod site;
mod tail;
#[cfg(test)]
mod tests;
mod variables;

pub(crate) use crate::handlers::dispatch::AnyHandler;
pub(crate) use crate::handlers::dispatch::Dispatch;
pub(crate) use crate::handlers::exec::Exec;
pub(crate) use crate::handlers::exec::ExecOptions;
pub(crate) use crate::handlers::persistent::Persistent;
pub(crate) use crate::handlers::persistent::PersistentOptions;
pub(crate) use crate::handlers::site::Placing;
pub(crate) use crate::handlers::site::Site;

//! What clients ask of the management of an entity, and of the node for tokens: a request comes over one link, its answer
//! goes over another.

mod answer;
mod cancelling;
mod counter;
mod deleting;
mod locks;
pub(crate) mod looking;
pub(crate) mod replies;
mod replying;
pub(crate) mod request;
mod rules;
mod scheduling;
mod sessions;
mod tokens;
mod topic_scheduling;

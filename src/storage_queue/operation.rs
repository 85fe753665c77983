//! What can be asked of this endpoint: how a request asks for it, what it needs, and the name it is counted under.

use http::Method;

use crate::sas::Right;
use crate::sas::Scope;
use crate::storage_queue::refused::Refused;
use crate::storage_queue::request::QueueRequest;

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    ListQueues,
    GetServiceProperties,
    SetServiceProperties,
    GetServiceStats,
    CreateQueue,
    DeleteQueue,
    GetQueueMetadata,
    SetQueueMetadata,
    GetQueueAcl,
    SetQueueAcl,
    PutMessage,
    GetMessages,
    PeekMessages,
    ClearMessages,
    UpdateMessage,
    DeleteMessage,
}

impl Operation {
    /// All of them, as they are declared.
    pub(crate) const ALL: [Operation; 16] = [
        Operation::ListQueues,
        Operation::GetServiceProperties,
        Operation::SetServiceProperties,
        Operation::GetServiceStats,
        Operation::CreateQueue,
        Operation::DeleteQueue,
        Operation::GetQueueMetadata,
        Operation::SetQueueMetadata,
        Operation::GetQueueAcl,
        Operation::SetQueueAcl,
        Operation::PutMessage,
        Operation::GetMessages,
        Operation::PeekMessages,
        Operation::ClearMessages,
        Operation::UpdateMessage,
        Operation::DeleteMessage,
    ];

    /// What a request asks for; a refusal if that is nothing that can be done.
    pub(crate) fn of(request: &QueueRequest) -> Result<Operation, Refused> {
        let path: Vec<&str> = request.path.iter().map(String::as_str).collect();
        let operation = match path[..] {
            [] => of_service(request),
            [_] => of_queue(request),
            [_, "messages"] => of_messages(request),
            [_, "messages", _] => of_message(request),
            _ => return Err(Refused::no_resource()),
        };
        operation.ok_or_else(Refused::no_method)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Operation::ListQueues => "list_queues",
            Operation::GetServiceProperties => "get_service_properties",
            Operation::SetServiceProperties => "set_service_properties",
            Operation::GetServiceStats => "get_service_stats",
            Operation::CreateQueue => "create_queue",
            Operation::DeleteQueue => "delete_queue",
            Operation::GetQueueMetadata => "get_queue_metadata",
            Operation::SetQueueMetadata => "set_queue_metadata",
            Operation::GetQueueAcl => "get_queue_acl",
            Operation::SetQueueAcl => "set_queue_acl",
            Operation::PutMessage => "put_message",
            Operation::GetMessages => "get_messages",
            Operation::PeekMessages => "peek_messages",
            Operation::ClearMessages => "clear_messages",
            Operation::UpdateMessage => "update_message",
            Operation::DeleteMessage => "delete_message",
        }
    }

    /// The permissions one of which a signature has to give, for something of which scope, and the right of its key.
    pub(crate) fn needs(self) -> (&'static str, Scope, Right) {
        match self {
            Operation::SetServiceProperties => ("w", Scope::Service, Right::Manage),
            Operation::ListQueues => ("l", Scope::Service, Right::Listen),
            Operation::GetServiceProperties | Operation::GetServiceStats => {
                ("r", Scope::Service, Right::Listen)
            }
            Operation::CreateQueue => ("cw", Scope::Queue, Right::Manage),
            Operation::DeleteQueue => ("d", Scope::Queue, Right::Manage),
            Operation::GetQueueMetadata => ("r", Scope::Queue, Right::Listen),
            Operation::GetQueueAcl => ("r", Scope::Queue, Right::Manage),
            Operation::SetQueueMetadata | Operation::SetQueueAcl => ("w", Scope::Queue, Right::Manage),
            Operation::PutMessage => ("a", Scope::Message, Right::Send),
            Operation::GetMessages | Operation::DeleteMessage => ("p", Scope::Message, Right::Listen),
            Operation::PeekMessages => ("r", Scope::Message, Right::Listen),
            Operation::UpdateMessage => ("u", Scope::Message, Right::Listen),
            Operation::ClearMessages => ("d", Scope::Message, Right::Manage),
        }
    }

    /// Whether it changes nothing, so that the secondary endpoint answers it too.
    pub(crate) fn only_reads(self) -> bool {
        matches!(
            self,
            Operation::ListQueues
                | Operation::GetServiceProperties
                | Operation::GetServiceStats
                | Operation::GetQueueMetadata
                | Operation::GetQueueAcl
                | Operation::PeekMessages
        )
    }

    /// Whether only the account's key itself can sign for it.
    pub(crate) fn needs_whole_key(self) -> bool {
        matches!(self, Operation::GetQueueAcl | Operation::SetQueueAcl)
    }
}

fn of_service(request: &QueueRequest) -> Option<Operation> {
    let is_service = request.field("restype") == Some("service");
    match (request.method(), request.field("comp"), is_service) {
        (&Method::GET, Some("list"), false) => Some(Operation::ListQueues),
        (&Method::GET, Some("properties"), true) => Some(Operation::GetServiceProperties),
        (&Method::PUT, Some("properties"), true) => Some(Operation::SetServiceProperties),
        (&Method::GET, Some("stats"), true) => Some(Operation::GetServiceStats),
        _ => None,
    }
}

fn of_queue(request: &QueueRequest) -> Option<Operation> {
    match (request.method(), request.field("comp")) {
        (&Method::PUT, None) => Some(Operation::CreateQueue),
        (&Method::DELETE, None) => Some(Operation::DeleteQueue),
        (&Method::GET | &Method::HEAD, Some("metadata")) => Some(Operation::GetQueueMetadata),
        (&Method::PUT, Some("metadata")) => Some(Operation::SetQueueMetadata),
        (&Method::GET | &Method::HEAD, Some("acl")) => Some(Operation::GetQueueAcl),
        (&Method::PUT, Some("acl")) => Some(Operation::SetQueueAcl),
        _ => None,
    }
}

fn of_messages(request: &QueueRequest) -> Option<Operation> {
    let is_peek = request.field("peekonly").is_some_and(|only| only.eq_ignore_ascii_case("true"));
    match *request.method() {
        Method::POST => Some(Operation::PutMessage),
        Method::GET if is_peek => Some(Operation::PeekMessages),
        Method::GET => Some(Operation::GetMessages),
        Method::DELETE => Some(Operation::ClearMessages),
        _ => None,
    }
}

fn of_message(request: &QueueRequest) -> Option<Operation> {
    match *request.method() {
        Method::PUT => Some(Operation::UpdateMessage),
        Method::DELETE => Some(Operation::DeleteMessage),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_operations_are_listed_where_they_are_declared_under_names_of_their_own() {
        let places = Operation::ALL.map(|operation| operation as usize);
        assert!(places.into_iter().eq(0..Operation::ALL.len()));
        let names: std::collections::BTreeSet<&str> = Operation::ALL.map(Operation::name).into();
        assert_eq!(names.len(), Operation::ALL.len());
    }
}

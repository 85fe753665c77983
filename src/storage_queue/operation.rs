//! What can be asked of this endpoint: how a request asks for it, what it needs, and the name it is counted under.

use http::Method;

use crate::sas::Right;
use crate::sas::SignatureScope;
use crate::storage_queue::refusal::StorageRefusal;
use crate::storage_queue::request::QueueRequest;

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StorageOperation {
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

impl StorageOperation {
    /// All of them, as they are declared.
    pub(crate) const ALL: [StorageOperation; 16] = [
        StorageOperation::ListQueues,
        StorageOperation::GetServiceProperties,
        StorageOperation::SetServiceProperties,
        StorageOperation::GetServiceStats,
        StorageOperation::CreateQueue,
        StorageOperation::DeleteQueue,
        StorageOperation::GetQueueMetadata,
        StorageOperation::SetQueueMetadata,
        StorageOperation::GetQueueAcl,
        StorageOperation::SetQueueAcl,
        StorageOperation::PutMessage,
        StorageOperation::GetMessages,
        StorageOperation::PeekMessages,
        StorageOperation::ClearMessages,
        StorageOperation::UpdateMessage,
        StorageOperation::DeleteMessage,
    ];

    /// What a request asks for; a refusal if that is nothing that can be done.
    pub(crate) fn of(request: &QueueRequest) -> Result<StorageOperation, StorageRefusal> {
        let path: Vec<&str> = request.path.iter().map(String::as_str).collect();
        let operation = match path[..] {
            [] => of_service(request),
            [_] => of_queue(request),
            [_, "messages"] => of_messages(request),
            [_, "messages", _] => of_message(request),
            _ => return Err(StorageRefusal::no_resource()),
        };
        operation.ok_or_else(StorageRefusal::no_method)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            StorageOperation::ListQueues => "list_queues",
            StorageOperation::GetServiceProperties => "get_service_properties",
            StorageOperation::SetServiceProperties => "set_service_properties",
            StorageOperation::GetServiceStats => "get_service_stats",
            StorageOperation::CreateQueue => "create_queue",
            StorageOperation::DeleteQueue => "delete_queue",
            StorageOperation::GetQueueMetadata => "get_queue_metadata",
            StorageOperation::SetQueueMetadata => "set_queue_metadata",
            StorageOperation::GetQueueAcl => "get_queue_acl",
            StorageOperation::SetQueueAcl => "set_queue_acl",
            StorageOperation::PutMessage => "put_message",
            StorageOperation::GetMessages => "get_messages",
            StorageOperation::PeekMessages => "peek_messages",
            StorageOperation::ClearMessages => "clear_messages",
            StorageOperation::UpdateMessage => "update_message",
            StorageOperation::DeleteMessage => "delete_message",
        }
    }

    /// The permissions one of which a signature has to give, for something of which scope, and the right of its key.
    pub(crate) fn needs(self) -> (&'static str, SignatureScope, Right) {
        match self {
            StorageOperation::SetServiceProperties => ("w", SignatureScope::Service, Right::Manage),
            StorageOperation::ListQueues => ("l", SignatureScope::Service, Right::Listen),
            StorageOperation::GetServiceProperties | StorageOperation::GetServiceStats => {
                ("r", SignatureScope::Service, Right::Listen)
            }
            StorageOperation::CreateQueue => ("cw", SignatureScope::Queue, Right::Manage),
            StorageOperation::DeleteQueue => ("d", SignatureScope::Queue, Right::Manage),
            StorageOperation::GetQueueMetadata => ("r", SignatureScope::Queue, Right::Listen),
            StorageOperation::GetQueueAcl => ("r", SignatureScope::Queue, Right::Manage),
            StorageOperation::SetQueueMetadata | StorageOperation::SetQueueAcl => {
                ("w", SignatureScope::Queue, Right::Manage)
            }
            StorageOperation::PutMessage => ("a", SignatureScope::Message, Right::Send),
            StorageOperation::GetMessages | StorageOperation::DeleteMessage => {
                ("p", SignatureScope::Message, Right::Listen)
            }
            StorageOperation::PeekMessages => ("r", SignatureScope::Message, Right::Listen),
            StorageOperation::UpdateMessage => ("u", SignatureScope::Message, Right::Listen),
            StorageOperation::ClearMessages => ("d", SignatureScope::Message, Right::Manage),
        }
    }

    /// Whether it changes nothing, so that the secondary endpoint answers it too.
    pub(crate) fn only_reads(self) -> bool {
        matches!(
            self,
            StorageOperation::ListQueues
                | StorageOperation::GetServiceProperties
                | StorageOperation::GetServiceStats
                | StorageOperation::GetQueueMetadata
                | StorageOperation::GetQueueAcl
                | StorageOperation::PeekMessages
        )
    }

    /// Whether only the account's key itself can sign for it.
    pub(crate) fn needs_whole_key(self) -> bool {
        matches!(self, StorageOperation::GetQueueAcl | StorageOperation::SetQueueAcl)
    }
}

fn of_service(request: &QueueRequest) -> Option<StorageOperation> {
    let is_service = request.field("restype") == Some("service");
    match (request.method(), request.field("comp"), is_service) {
        (&Method::GET, Some("list"), false) => Some(StorageOperation::ListQueues),
        (&Method::GET, Some("properties"), true) => Some(StorageOperation::GetServiceProperties),
        (&Method::PUT, Some("properties"), true) => Some(StorageOperation::SetServiceProperties),
        (&Method::GET, Some("stats"), true) => Some(StorageOperation::GetServiceStats),
        _ => None,
    }
}

fn of_queue(request: &QueueRequest) -> Option<StorageOperation> {
    match (request.method(), request.field("comp")) {
        (&Method::PUT, None) => Some(StorageOperation::CreateQueue),
        (&Method::DELETE, None) => Some(StorageOperation::DeleteQueue),
        (&Method::GET | &Method::HEAD, Some("metadata")) => Some(StorageOperation::GetQueueMetadata),
        (&Method::PUT, Some("metadata")) => Some(StorageOperation::SetQueueMetadata),
        (&Method::GET | &Method::HEAD, Some("acl")) => Some(StorageOperation::GetQueueAcl),
        (&Method::PUT, Some("acl")) => Some(StorageOperation::SetQueueAcl),
        _ => None,
    }
}

fn of_messages(request: &QueueRequest) -> Option<StorageOperation> {
    let is_peek = request.field("peekonly").is_some_and(|only| only.eq_ignore_ascii_case("true"));
    match *request.method() {
        Method::POST => Some(StorageOperation::PutMessage),
        Method::GET if is_peek => Some(StorageOperation::PeekMessages),
        Method::GET => Some(StorageOperation::GetMessages),
        Method::DELETE => Some(StorageOperation::ClearMessages),
        _ => None,
    }
}

fn of_message(request: &QueueRequest) -> Option<StorageOperation> {
    match *request.method() {
        Method::PUT => Some(StorageOperation::UpdateMessage),
        Method::DELETE => Some(StorageOperation::DeleteMessage),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_operations_are_listed_where_they_are_declared_under_names_of_their_own() {
        let places = StorageOperation::ALL.map(|operation| operation as usize);
        assert!(places.into_iter().eq(0..StorageOperation::ALL.len()));
        let names: std::collections::BTreeSet<&str> =
            StorageOperation::ALL.map(StorageOperation::name).into();
        assert_eq!(names.len(), StorageOperation::ALL.len());
    }
}

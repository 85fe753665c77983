//! Refusals, with the codes by which Azure's SDKs know them.

use axum::response::IntoResponse;
use axum::response::Response;
use http::StatusCode;

use crate::error::Misuse;
use crate::error::QueueError;
use crate::error::QueueRefusal;
use crate::error::ReceiveError;
use crate::error::ReceiveRefusal;
use crate::error::SendError;
use crate::error::SendRefusal;
use crate::error::SettleError;
use crate::error::SettleRefusal;
use crate::error::Unavailable;
use crate::inbound::browser::Foreign;
use crate::inbound::inflow::BodyRefusal;
use crate::records::RecordError;
use crate::sas;
use crate::storage_queue::answer;
use crate::xml::Xml;

/// Why a request is refused.
#[derive(Debug)]
pub(crate) struct StorageRefusal {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) message: String,
}

/// What a request is answered.
pub(crate) type StorageResult = Result<Response, StorageRefusal>;

impl StorageRefusal {
    fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> StorageRefusal {
        StorageRefusal { status, code, message: message.into() }
    }

    pub(crate) fn bad(code: &'static str, message: impl Into<String>) -> StorageRefusal {
        StorageRefusal::new(StatusCode::BAD_REQUEST, code, message)
    }

    pub(crate) fn forbidden(code: &'static str, message: impl Into<String>) -> StorageRefusal {
        StorageRefusal::new(StatusCode::FORBIDDEN, code, message)
    }

    pub(crate) fn conflict(code: &'static str, message: impl Into<String>) -> StorageRefusal {
        StorageRefusal::new(StatusCode::CONFLICT, code, message)
    }

    pub(crate) fn busy(message: impl Into<String>) -> StorageRefusal {
        StorageRefusal::new(StatusCode::SERVICE_UNAVAILABLE, "ServerBusy", message)
    }

    /// The disk has no room for anything new.
    fn full(message: impl Into<String>) -> StorageRefusal {
        StorageRefusal::new(StatusCode::INSUFFICIENT_STORAGE, "InsufficientStorage", message)
    }

    pub(crate) fn no_queue() -> StorageRefusal {
        StorageRefusal::new(StatusCode::NOT_FOUND, "QueueNotFound", "there is no such queue")
    }

    pub(crate) fn no_message() -> StorageRefusal {
        StorageRefusal::new(StatusCode::NOT_FOUND, "MessageNotFound", "there is no such message")
    }

    pub(crate) fn stale_receipt() -> StorageRefusal {
        let message = "the pop receipt is not the last that was given for this message";
        StorageRefusal::bad("PopReceiptMismatch", message)
    }

    pub(crate) fn no_resource() -> StorageRefusal {
        StorageRefusal::new(StatusCode::NOT_FOUND, "ResourceNotFound", "nothing is at this path")
    }

    pub(crate) fn no_method() -> StorageRefusal {
        let message = "this cannot be done to what is at this path";
        StorageRefusal::new(StatusCode::METHOD_NOT_ALLOWED, "UnsupportedHttpVerb", message)
    }

    pub(crate) fn too_large() -> StorageRefusal {
        StorageRefusal::bad("MessageTooLarge", "the text has more bytes than a message of this queue may")
    }

    pub(crate) fn out_of_range(name: &str) -> StorageRefusal {
        StorageRefusal::bad("OutOfRangeQueryParameterValue", format!("{name} is outside its range"))
    }

    /// A name whose length no queue's name has.
    pub(crate) fn wrong_length() -> StorageRefusal {
        StorageRefusal::bad("OutOfRangeInput", "the name of a queue has 3 to 63 characters")
    }

    /// The secondary endpoint of an account is there to be read.
    pub(crate) fn read_only() -> StorageRefusal {
        let message = "the secondary endpoint is for reading: send what changes something to the primary one";
        StorageRefusal::forbidden("InsufficientAccountPermissions", message)
    }

    fn fault(message: impl Into<String>) -> StorageRefusal {
        StorageRefusal::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message)
    }
}

impl From<Unavailable> for StorageRefusal {
    fn from(unavailable: Unavailable) -> StorageRefusal {
        StorageRefusal::busy(unavailable.to_string())
    }
}

impl From<Misuse> for StorageRefusal {
    fn from(misuse: Misuse) -> StorageRefusal {
        StorageRefusal::bad("InvalidInput", misuse.to_string())
    }
}

impl From<QueueError> for StorageRefusal {
    fn from(error: QueueError) -> StorageRefusal {
        match error {
            QueueError::Refused(QueueRefusal::QueueNotFound(_)) => StorageRefusal::no_queue(),
            QueueError::Refused(refusal @ QueueRefusal::StorageFull(_)) => {
                StorageRefusal::full(refusal.to_string())
            }
            QueueError::Refused(refusal) => {
                StorageRefusal::conflict("QueueAlreadyExists", refusal.to_string())
            }
            QueueError::Misuse(misuse) => misuse.into(),
            QueueError::Unavailable(unavailable) => unavailable.into(),
        }
    }
}

impl From<RecordError> for StorageRefusal {
    fn from(error: RecordError) -> StorageRefusal {
        match error {
            RecordError::Queue(error) => error.into(),
            RecordError::Misuse(misuse) => misuse.into(),
            RecordError::Unavailable(unavailable) => unavailable.into(),
            RecordError::Refused(error) => StorageRefusal::busy(error.to_string()),
        }
    }
}

impl From<SendError> for StorageRefusal {
    fn from(error: SendError) -> StorageRefusal {
        match error {
            SendError::Refused(SendRefusal::QueueNotFound(_)) => StorageRefusal::no_queue(),
            SendError::Refused(SendRefusal::BodyTooLarge { .. }) => StorageRefusal::too_large(),
            SendError::Refused(refusal @ SendRefusal::QueueFull { .. }) => {
                StorageRefusal::busy(refusal.to_string())
            }
            SendError::Refused(refusal @ SendRefusal::StorageFull) => {
                StorageRefusal::full(refusal.to_string())
            }
            SendError::Refused(refusal) => StorageRefusal::bad("InvalidInput", refusal.to_string()),
            SendError::Misuse(misuse) => misuse.into(),
            SendError::Unavailable(unavailable) => unavailable.into(),
        }
    }
}

impl From<ReceiveError> for StorageRefusal {
    fn from(error: ReceiveError) -> StorageRefusal {
        match error {
            ReceiveError::Refused(ReceiveRefusal::QueueNotFound(_)) => StorageRefusal::no_queue(),
            ReceiveError::Refused(refusal) => StorageRefusal::busy(refusal.to_string()),
            ReceiveError::Misuse(misuse) => misuse.into(),
            ReceiveError::Unavailable(unavailable) => unavailable.into(),
        }
    }
}

impl From<SettleError> for StorageRefusal {
    fn from(error: SettleError) -> StorageRefusal {
        match error {
            SettleError::Refused(SettleRefusal::QueueNotFound) => StorageRefusal::no_queue(),
            SettleError::Refused(SettleRefusal::MessageNotFound(_)) => StorageRefusal::no_message(),
            SettleError::Refused(SettleRefusal::LockLost) => StorageRefusal::stale_receipt(),
            SettleError::Refused(SettleRefusal::Send(SendRefusal::BodyTooLarge { .. })) => {
                StorageRefusal::too_large()
            }
            SettleError::Refused(refusal) => StorageRefusal::fault(refusal.to_string()),
            SettleError::Misuse(misuse) => misuse.into(),
            SettleError::Unavailable(unavailable) => unavailable.into(),
        }
    }
}

impl From<BodyRefusal> for StorageRefusal {
    fn from(refusal: BodyRefusal) -> StorageRefusal {
        let message = refusal.to_string();
        match refusal {
            BodyRefusal::TooLarge(_) => {
                StorageRefusal::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestBodyTooLarge", message)
            }
            BodyRefusal::TooSlow { .. } => {
                StorageRefusal::new(StatusCode::REQUEST_TIMEOUT, "OperationTimedOut", message)
            }
            BodyRefusal::Broken(_) => StorageRefusal::bad("InvalidInput", message),
            BodyRefusal::NoRoom => StorageRefusal::busy(message),
        }
    }
}

impl From<Foreign> for StorageRefusal {
    fn from(foreign: Foreign) -> StorageRefusal {
        StorageRefusal::forbidden("AuthenticationFailed", foreign.to_string())
    }
}

impl From<sas::SignatureRefusal> for StorageRefusal {
    fn from(refusal: sas::SignatureRefusal) -> StorageRefusal {
        let code = match refusal {
            sas::SignatureRefusal::Address => "AuthorizationSourceIPMismatch",
            sas::SignatureRefusal::Protocol => "AuthorizationProtocolMismatch",
            _ => "AuthenticationFailed",
        };
        StorageRefusal::forbidden(code, refusal.to_string())
    }
}

impl IntoResponse for StorageRefusal {
    fn into_response(self) -> Response {
        let mut xml = Xml::new();
        xml.within("Error", |xml| {
            xml.leaf("Code", self.code);
            xml.leaf("Message", &self.message);
        });
        answer::headed(answer::xml(self.status, xml), [("x-ms-error-code", self.code.to_owned())])
    }
}

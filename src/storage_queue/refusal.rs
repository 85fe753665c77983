//! Refusals, with the codes by which Azure's SDKs know them.

use axum::response::IntoResponse;
use axum::response::Response;
use http::StatusCode;

use crate::error::Misuse;
use crate::error::OperationError;
use crate::error::QueueRefusal;
use crate::error::ReceiveRefusal;
use crate::error::SendRefusal;
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

impl<R: std::error::Error + 'static> From<OperationError<R>> for StorageRefusal
where
    StorageRefusal: From<R>,
{
    fn from(error: OperationError<R>) -> StorageRefusal {
        match error {
            OperationError::Refused(refusal) => refusal.into(),
            OperationError::Misuse(misuse) => misuse.into(),
            OperationError::Unavailable(unavailable) => unavailable.into(),
        }
    }
}

impl From<QueueRefusal> for StorageRefusal {
    fn from(refusal: QueueRefusal) -> StorageRefusal {
        match refusal {
            QueueRefusal::QueueNotFound(_) => StorageRefusal::no_queue(),
            QueueRefusal::StorageFull(_) | QueueRefusal::TooManyQueues(_) => {
                StorageRefusal::full(refusal.to_string())
            }
            // Who makes a queue unless it is there takes `QueueAlreadyExists` for that.
            QueueRefusal::NameIsTopic(_) | QueueRefusal::NotSubscribed(_) => {
                StorageRefusal::conflict("ResourceTypeMismatch", refusal.to_string())
            }
            QueueRefusal::QueueExists(_) | QueueRefusal::OrderInUse(_) => {
                StorageRefusal::conflict("QueueAlreadyExists", refusal.to_string())
            }
        }
    }
}

impl From<RecordError> for StorageRefusal {
    fn from(error: RecordError) -> StorageRefusal {
        match error {
            RecordError::Queue(error) => error.into(),
            RecordError::Misuse(misuse) => misuse.into(),
            RecordError::Unavailable(unavailable) => unavailable.into(),
            RecordError::Refused(_) | RecordError::Unsure(_) => StorageRefusal::busy(error.to_string()),
        }
    }
}

impl From<SendRefusal> for StorageRefusal {
    fn from(refusal: SendRefusal) -> StorageRefusal {
        match refusal {
            SendRefusal::QueueNotFound(_) => StorageRefusal::no_queue(),
            SendRefusal::BodyTooLarge { .. } => StorageRefusal::too_large(),
            SendRefusal::QueueFull { .. } => StorageRefusal::busy(refusal.to_string()),
            SendRefusal::StorageFull => StorageRefusal::full(refusal.to_string()),
            refusal => StorageRefusal::bad("InvalidInput", refusal.to_string()),
        }
    }
}

impl From<ReceiveRefusal> for StorageRefusal {
    fn from(refusal: ReceiveRefusal) -> StorageRefusal {
        match refusal {
            ReceiveRefusal::QueueNotFound(_) => StorageRefusal::no_queue(),
            refusal => StorageRefusal::busy(refusal.to_string()),
        }
    }
}

impl From<SettleRefusal> for StorageRefusal {
    fn from(refusal: SettleRefusal) -> StorageRefusal {
        match refusal {
            SettleRefusal::QueueNotFound => StorageRefusal::no_queue(),
            SettleRefusal::MessageNotFound(_) => StorageRefusal::no_message(),
            SettleRefusal::LockLost => StorageRefusal::stale_receipt(),
            SettleRefusal::Send(refusal) => refusal.into(),
            refusal => StorageRefusal::fault(refusal.to_string()),
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

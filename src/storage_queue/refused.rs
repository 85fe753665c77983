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
pub(crate) struct Refused {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) message: String,
}

/// What a request is answered.
pub(crate) type Answer = Result<Response, Refused>;

impl Refused {
    fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Refused {
        Refused { status, code, message: message.into() }
    }

    pub(crate) fn bad(code: &'static str, message: impl Into<String>) -> Refused {
        Refused::new(StatusCode::BAD_REQUEST, code, message)
    }

    pub(crate) fn forbidden(code: &'static str, message: impl Into<String>) -> Refused {
        Refused::new(StatusCode::FORBIDDEN, code, message)
    }

    pub(crate) fn conflict(code: &'static str, message: impl Into<String>) -> Refused {
        Refused::new(StatusCode::CONFLICT, code, message)
    }

    pub(crate) fn busy(message: impl Into<String>) -> Refused {
        Refused::new(StatusCode::SERVICE_UNAVAILABLE, "ServerBusy", message)
    }

    /// The disk has no room for anything new.
    fn full(message: impl Into<String>) -> Refused {
        Refused::new(StatusCode::INSUFFICIENT_STORAGE, "InsufficientStorage", message)
    }

    pub(crate) fn no_queue() -> Refused {
        Refused::new(StatusCode::NOT_FOUND, "QueueNotFound", "there is no such queue")
    }

    pub(crate) fn no_message() -> Refused {
        Refused::new(StatusCode::NOT_FOUND, "MessageNotFound", "there is no such message")
    }

    pub(crate) fn stale_receipt() -> Refused {
        let message = "the pop receipt is not the last that was given for this message";
        Refused::bad("PopReceiptMismatch", message)
    }

    pub(crate) fn no_resource() -> Refused {
        Refused::new(StatusCode::NOT_FOUND, "ResourceNotFound", "nothing is at this path")
    }

    pub(crate) fn no_method() -> Refused {
        let message = "this cannot be done to what is at this path";
        Refused::new(StatusCode::METHOD_NOT_ALLOWED, "UnsupportedHttpVerb", message)
    }

    pub(crate) fn too_large() -> Refused {
        Refused::bad("MessageTooLarge", "the text has more bytes than a message of this queue may")
    }

    pub(crate) fn out_of_range(name: &str) -> Refused {
        Refused::bad("OutOfRangeQueryParameterValue", format!("{name} is outside its range"))
    }

    /// A name whose length no queue's name has.
    pub(crate) fn wrong_length() -> Refused {
        Refused::bad("OutOfRangeInput", "the name of a queue has 3 to 63 characters")
    }

    /// The secondary endpoint of an account is there to be read.
    pub(crate) fn read_only() -> Refused {
        let message = "the secondary endpoint is for reading: send what changes something to the primary one";
        Refused::forbidden("InsufficientAccountPermissions", message)
    }

    fn fault(message: impl Into<String>) -> Refused {
        Refused::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message)
    }
}

impl From<Unavailable> for Refused {
    fn from(unavailable: Unavailable) -> Refused {
        Refused::busy(unavailable.to_string())
    }
}

impl From<Misuse> for Refused {
    fn from(misuse: Misuse) -> Refused {
        Refused::bad("InvalidInput", misuse.to_string())
    }
}

impl From<QueueError> for Refused {
    fn from(error: QueueError) -> Refused {
        match error {
            QueueError::Refused(QueueRefusal::QueueNotFound(_)) => Refused::no_queue(),
            QueueError::Refused(refusal @ QueueRefusal::StorageFull(_)) => Refused::full(refusal.to_string()),
            QueueError::Refused(refusal) => Refused::conflict("QueueAlreadyExists", refusal.to_string()),
            QueueError::Misuse(misuse) => misuse.into(),
            QueueError::Unavailable(unavailable) => unavailable.into(),
        }
    }
}

impl From<RecordError> for Refused {
    fn from(error: RecordError) -> Refused {
        match error {
            RecordError::Queue(error) => error.into(),
            RecordError::Misuse(misuse) => misuse.into(),
            RecordError::Unavailable(unavailable) => unavailable.into(),
            RecordError::Refused(error) => Refused::busy(error.to_string()),
        }
    }
}

impl From<SendError> for Refused {
    fn from(error: SendError) -> Refused {
        match error {
            SendError::Refused(SendRefusal::QueueNotFound(_)) => Refused::no_queue(),
            SendError::Refused(SendRefusal::BodyTooLarge { .. }) => Refused::too_large(),
            SendError::Refused(refusal @ SendRefusal::QueueFull { .. }) => Refused::busy(refusal.to_string()),
            SendError::Refused(refusal @ SendRefusal::StorageFull) => Refused::full(refusal.to_string()),
            SendError::Refused(refusal) => Refused::bad("InvalidInput", refusal.to_string()),
            SendError::Misuse(misuse) => misuse.into(),
            SendError::Unavailable(unavailable) => unavailable.into(),
        }
    }
}

impl From<ReceiveError> for Refused {
    fn from(error: ReceiveError) -> Refused {
        match error {
            ReceiveError::Refused(ReceiveRefusal::QueueNotFound(_)) => Refused::no_queue(),
            ReceiveError::Refused(refusal) => Refused::busy(refusal.to_string()),
            ReceiveError::Misuse(misuse) => misuse.into(),
            ReceiveError::Unavailable(unavailable) => unavailable.into(),
        }
    }
}

impl From<SettleError> for Refused {
    fn from(error: SettleError) -> Refused {
        match error {
            SettleError::Refused(SettleRefusal::QueueNotFound) => Refused::no_queue(),
            SettleError::Refused(SettleRefusal::MessageNotFound(_)) => Refused::no_message(),
            SettleError::Refused(SettleRefusal::LockLost) => Refused::stale_receipt(),
            SettleError::Refused(SettleRefusal::Send(SendRefusal::BodyTooLarge { .. })) => {
                Refused::too_large()
            }
            SettleError::Refused(refusal) => Refused::fault(refusal.to_string()),
            SettleError::Misuse(misuse) => misuse.into(),
            SettleError::Unavailable(unavailable) => unavailable.into(),
        }
    }
}

impl From<BodyRefusal> for Refused {
    fn from(refusal: BodyRefusal) -> Refused {
        let message = refusal.to_string();
        match refusal {
            BodyRefusal::TooLarge(_) => {
                Refused::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestBodyTooLarge", message)
            }
            BodyRefusal::TooSlow { .. } => {
                Refused::new(StatusCode::REQUEST_TIMEOUT, "OperationTimedOut", message)
            }
            BodyRefusal::Broken(_) => Refused::bad("InvalidInput", message),
            BodyRefusal::NoRoom => Refused::busy(message),
        }
    }
}

impl From<Foreign> for Refused {
    fn from(foreign: Foreign) -> Refused {
        Refused::forbidden("AuthenticationFailed", foreign.to_string())
    }
}

impl From<sas::Refusal> for Refused {
    fn from(refusal: sas::Refusal) -> Refused {
        let code = match refusal {
            sas::Refusal::Address => "AuthorizationSourceIPMismatch",
            sas::Refusal::Protocol => "AuthorizationProtocolMismatch",
            _ => "AuthenticationFailed",
        };
        Refused::forbidden(code, refusal.to_string())
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let mut xml = Xml::new();
        xml.within("Error", |xml| {
            xml.leaf("Code", self.code);
            xml.leaf("Message", &self.message);
        });
        answer::headed(answer::xml(self.status, xml), [("x-ms-error-code", self.code.to_owned())])
    }
}

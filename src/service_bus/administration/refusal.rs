//! Refusals, with the status and the words by which SDKs know them.

use std::borrow::Cow;

use axum::response::IntoResponse;
use axum::response::Response;
use http::StatusCode;

use crate::error::Misuse;
use crate::error::OperationError;
use crate::error::QueueRefusal;
use crate::error::TopicRefusal;
use crate::error::Unavailable;
use crate::inbound::browser::bytes_as;
use crate::inbound::inflow::BodyRefusal;
use crate::records::RecordError;
use crate::sas;
use crate::service_bus::changeable::DefinedByFile;
use crate::service_bus::slashed::entity_name;
use crate::xml::Xml;

/// Why a request is refused.
#[derive(Debug)]
pub(crate) struct AdminRefusal {
    pub(crate) status: StatusCode,
    pub(crate) detail: String,
}

/// What a request is answered.
pub(crate) type AdminResult = Result<Response, AdminRefusal>;

impl AdminRefusal {
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> AdminRefusal {
        AdminRefusal { status, detail: detail.into() }
    }

    pub(crate) fn bad(detail: impl Into<String>) -> AdminRefusal {
        AdminRefusal::new(StatusCode::BAD_REQUEST, format!("SubCode=40000. {}", detail.into()))
    }

    pub(crate) fn not_found(what: &str, name: &str) -> AdminRefusal {
        let name = called(what, name);
        let detail =
            format!("SubCode=40400. The messaging entity could not be found: there is no {what} {name}");
        AdminRefusal::new(StatusCode::NOT_FOUND, detail)
    }

    pub(crate) fn exists(what: &str, name: &str) -> AdminRefusal {
        let name = called(what, name);
        let detail = format!("SubCode=40900. Conflict. There is a {what} {name} already");
        AdminRefusal::new(StatusCode::CONFLICT, detail)
    }

    pub(crate) fn unauthorized(why: &str) -> AdminRefusal {
        AdminRefusal::new(StatusCode::UNAUTHORIZED, format!("SubCode=40100. Unauthorized: {why}"))
    }

    /// There are as many as there may be.
    fn quota(detail: impl Into<String>) -> AdminRefusal {
        AdminRefusal::new(StatusCode::FORBIDDEN, format!("SubCode=40300. {}", detail.into()))
    }

    pub(crate) fn busy(detail: impl Into<String>) -> AdminRefusal {
        AdminRefusal::new(StatusCode::SERVICE_UNAVAILABLE, format!("SubCode=50300. {}", detail.into()))
    }
}

/// What a client calls something of a kind; subscriptions and rules have their own names everywhere.
fn called<'a>(what: &str, name: &'a str) -> Cow<'a, str> {
    if matches!(what, "subscription" | "rule") { Cow::Borrowed(name) } else { entity_name(name) }
}

impl From<Unavailable> for AdminRefusal {
    fn from(unavailable: Unavailable) -> AdminRefusal {
        AdminRefusal::busy(unavailable.to_string())
    }
}

impl From<DefinedByFile> for AdminRefusal {
    fn from(defined: DefinedByFile) -> AdminRefusal {
        AdminRefusal::new(StatusCode::FORBIDDEN, format!("SubCode=40301. {defined}"))
    }
}

impl From<Misuse> for AdminRefusal {
    fn from(misuse: Misuse) -> AdminRefusal {
        AdminRefusal::bad(misuse.to_string())
    }
}

impl<R: std::error::Error + 'static> From<OperationError<R>> for AdminRefusal
where
    AdminRefusal: From<R>,
{
    fn from(error: OperationError<R>) -> AdminRefusal {
        match error {
            OperationError::Refused(refusal) => refusal.into(),
            OperationError::Misuse(misuse) => misuse.into(),
            OperationError::Unavailable(unavailable) => unavailable.into(),
        }
    }
}

impl From<QueueRefusal> for AdminRefusal {
    fn from(refusal: QueueRefusal) -> AdminRefusal {
        match &refusal {
            QueueRefusal::QueueNotFound(name) => AdminRefusal::not_found("queue", name.as_str()),
            QueueRefusal::QueueExists(name) => AdminRefusal::exists("queue", name.as_str()),
            QueueRefusal::NameIsTopic(name) => AdminRefusal::exists("topic", name.as_str()),
            QueueRefusal::OrderInUse(_) => AdminRefusal::bad(refusal.to_string()),
            _ => AdminRefusal::quota(refusal.to_string()),
        }
    }
}

impl From<TopicRefusal> for AdminRefusal {
    fn from(refusal: TopicRefusal) -> AdminRefusal {
        match &refusal {
            TopicRefusal::TopicNotFound(name) => AdminRefusal::not_found("topic", name.as_str()),
            TopicRefusal::NameIsQueue(name) => AdminRefusal::exists("queue", name.as_str()),
            TopicRefusal::SubscriptionNotFound(_, name) => {
                AdminRefusal::not_found("subscription", name.as_str())
            }
            TopicRefusal::RuleNotFound(_, _, name) => AdminRefusal::not_found("rule", name.as_str()),
            TopicRefusal::SubscriptionExists(_, name) => AdminRefusal::exists("subscription", name.as_str()),
            TopicRefusal::RuleExists(_, _, name) => AdminRefusal::exists("rule", name.as_str()),
            TopicRefusal::OptionsRefused(..) => AdminRefusal::bad(refusal.to_string()),
            TopicRefusal::TopicChanged(_) => AdminRefusal::busy(refusal.to_string()),
            _ => AdminRefusal::quota(refusal.to_string()),
        }
    }
}

impl From<RecordError> for AdminRefusal {
    fn from(error: RecordError) -> AdminRefusal {
        match error {
            RecordError::Queue(error) => error.into(),
            RecordError::Misuse(misuse) => misuse.into(),
            RecordError::Unavailable(unavailable) => unavailable.into(),
            RecordError::Refused(_) | RecordError::Unsure(_) => AdminRefusal::busy(error.to_string()),
        }
    }
}

impl From<BodyRefusal> for AdminRefusal {
    fn from(refusal: BodyRefusal) -> AdminRefusal {
        let status = match refusal {
            BodyRefusal::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            BodyRefusal::TooSlow { .. } => StatusCode::REQUEST_TIMEOUT,
            BodyRefusal::Broken(_) => StatusCode::BAD_REQUEST,
            BodyRefusal::NoRoom => StatusCode::SERVICE_UNAVAILABLE,
        };
        AdminRefusal::new(status, refusal.to_string())
    }
}

impl From<sas::SignatureRefusal> for AdminRefusal {
    fn from(refusal: sas::SignatureRefusal) -> AdminRefusal {
        AdminRefusal::unauthorized(&refusal.to_string())
    }
}

impl IntoResponse for AdminRefusal {
    fn into_response(self) -> Response {
        let mut xml = Xml::new();
        xml.within("Error", |xml| {
            xml.leaf("Code", self.status.as_str());
            xml.leaf("Detail", &self.detail);
        });
        bytes_as(self.status, "application/xml; charset=utf-8", xml.into_text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::QueueName;

    #[test]
    fn an_entity_is_called_as_its_client_calls_it() {
        let name = QueueName::new("a_2F_b").unwrap();
        let exists = AdminRefusal::from(QueueRefusal::QueueExists(name.clone()));
        assert!(exists.detail.ends_with("There is a queue a/b already"), "{exists:?}");
        let missing = AdminRefusal::from(TopicRefusal::TopicNotFound(name));
        assert!(missing.detail.ends_with("there is no topic a/b"), "{missing:?}");
        let rule = AdminRefusal::exists("rule", "a_2F_b");
        assert!(rule.detail.ends_with("There is a rule a_2F_b already"), "{rule:?}");
    }
}

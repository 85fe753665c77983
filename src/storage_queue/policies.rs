//! Stored access policies: terms of shared access signatures that can be changed, or taken back, after they were given away.

use axum::body::Body;
use http::StatusCode;
use serde::Deserialize;
use serde::Serialize;

use crate::clock::Timestamp;
use crate::engine::Client;
use crate::limits;
use crate::sas::AccessPolicy;
use crate::sas::parse_instant;
use crate::sas::read_instant;
use crate::storage_queue::answer;
use crate::storage_queue::element;
use crate::storage_queue::element::Element;
use crate::storage_queue::metadata::made_at;
use crate::storage_queue::records::RECORDS;
use crate::storage_queue::refusal::StorageRefusal;
use crate::storage_queue::refusal::StorageResult;
use crate::storage_queue::request::whole;
use crate::storage_queue::shared::SharedStorage;
use crate::storage_queue::times;
use crate::xml::Xml;

/// The policies of a queue.
#[derive(Debug, Serialize, Deserialize)]
struct Policies {
    /// When the queue was made that they are for. Another queue of this name has none of them, however this one ended.
    queue_created_at: Timestamp,
    policies: Vec<StoredPolicy>,
}

/// One of them, as it is shown; what it leaves open, a signature that names it has to say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct StoredPolicy {
    id: String,
    start: Option<String>,
    expiry: Option<String>,
    permissions: Option<String>,
}

/// The policy of an ID, if the queue has it.
pub(crate) async fn find(
    client: &Client,
    queue: &str,
    id: &str,
) -> Result<Option<AccessPolicy>, StorageRefusal> {
    let stored = load(client, queue).await?.into_iter().find(|policy| policy.id == id);
    let Some(StoredPolicy { id: _, start, expiry, permissions }) = stored else { return Ok(None) };
    let instant = |text: Option<String>| text.map(|text| read_instant(&text)).transpose();
    Ok(Some(AccessPolicy { start: instant(start)?, expiry: instant(expiry)?, permissions }))
}

/// Tells the policies of a queue.
pub(crate) async fn show(shared: &SharedStorage, queue: &str) -> StorageResult {
    shared.queue(queue)?;
    let policies = load(shared.client(), queue).await?;
    let mut xml = Xml::new();
    xml.within("SignedIdentifiers", |xml| policies.iter().for_each(|policy| policy.write(xml)));
    Ok(answer::xml(StatusCode::OK, xml))
}

/// Sets all policies of a queue, in place of those it had, as the client of whoever may.
pub(crate) async fn set(shared: &SharedStorage, body: Body, client: &Client, queue: &str) -> StorageResult {
    let view = shared.queue(queue)?.view().await?;
    let queue_created_at = made_at(&view).ok_or_else(unsure)?;
    let policies = read(&whole(&shared.reading, body).await?)?;
    let record = (!policies.is_empty()).then_some(Policies { queue_created_at, policies });
    RECORDS.store(client, &record_of(queue), record.as_ref()).await?;
    Ok(answer::empty(StatusCode::NO_CONTENT))
}

/// Removes the policies of a queue that is gone.
pub(crate) async fn remove(client: &Client, queue: &str) -> Result<(), StorageRefusal> {
    let name = record_of(queue);
    match RECORDS.load::<Policies>(client, &name).await? {
        Some(_) => Ok(RECORDS.store::<Policies>(client, &name, None).await?),
        None => Ok(()),
    }
}

async fn load(client: &Client, queue: &str) -> Result<Vec<StoredPolicy>, StorageRefusal> {
    let view = client.queue(queue)?.view().await?;
    let Some(found) = RECORDS.load::<Policies>(client, &record_of(queue)).await? else {
        return Ok(Vec::new());
    };
    match found.queue_created_at == view.created_at {
        true => Ok(found.policies),
        // A partition that does not answer may have it since then.
        false if made_at(&view).is_none() && found.queue_created_at < view.created_at => Err(unsure()),
        false => Ok(Vec::new()),
    }
}

/// While it is not known whose policies are kept: whoever is told that there are none would give up.
fn unsure() -> StorageRefusal {
    StorageRefusal::busy("a partition that may have the queue does not answer")
}

/// Metadata are kept under the queue's own name, which has no such character.
fn record_of(queue: &str) -> String {
    format!("$policies/{queue}")
}

fn read(body: &[u8]) -> Result<Vec<StoredPolicy>, StorageRefusal> {
    if body.is_empty() {
        return Ok(Vec::new());
    }
    element::read(body, "SignedIdentifiers", |root| {
        let mut policies: Vec<StoredPolicy> = Vec::new();
        for element in root.all("SignedIdentifier")? {
            let policy = StoredPolicy::read(element)?;
            if policies.iter().any(|other| other.id == policy.id) {
                return Err(StorageRefusal::bad("InvalidXmlDocument", "two policies have the same ID"));
            }
            policies.push(policy);
        }
        let max = limits::STORAGE_POLICIES_MAX;
        match policies.len() > max {
            true => {
                Err(StorageRefusal::bad("InvalidXmlDocument", format!("a queue has at most {max} policies")))
            }
            false => Ok(policies),
        }
    })
}

impl StoredPolicy {
    fn read(element: Element<'_>) -> Result<StoredPolicy, StorageRefusal> {
        let [id, terms] = element.parts(["Id", "AccessPolicy"])?;
        let is_id = |id: &str| (1..=limits::STORAGE_POLICY_ID_CHARS_MAX).contains(&id.chars().count());
        let id = id.ok_or_else(|| element.lacks("Id"))?;
        let id = id.value(|text| is_id(text).then(|| text.to_owned()))?;
        let parts = terms.map(|terms| terms.parts(["Start", "Expiry", "Permission"])).transpose()?;
        let [start, expiry, permissions] = parts.unwrap_or_default();
        let instant = |part: Option<Element<'_>>| match part.filter(|part| !part.text().is_empty()) {
            Some(part) => part.value(|text| parse_instant(text).ok().map(times::instant)).map(Some),
            None => Ok(None),
        };
        let permissions = match permissions.filter(|part| !part.text().is_empty()) {
            Some(part) => Some(part.value(|text| is_permissions(text).then(|| text.to_owned()))?),
            None => None,
        };
        Ok(StoredPolicy { id, start: instant(start)?, expiry: instant(expiry)?, permissions })
    }

    fn write(&self, xml: &mut Xml) {
        xml.within("SignedIdentifier", |xml| {
            xml.leaf("Id", &self.id);
            let terms = [("Start", &self.start), ("Expiry", &self.expiry), ("Permission", &self.permissions)];
            xml.within("AccessPolicy", |xml| {
                for (name, term) in terms {
                    if let Some(term) = term {
                        xml.leaf(name, term);
                    }
                }
            });
        });
    }
}

/// Reading, adding, updating and processing messages, in any order.
fn is_permissions(text: &str) -> bool {
    text.chars().enumerate().all(|(at, letter)| "raup".contains(letter) && !text[..at].contains(letter))
}

//! Queues in pages, in order of name.

use http::StatusCode;

use crate::clock::Timestamp;
use crate::id::QueueName;
use crate::limits;
use crate::storage_queue::access::StorageAccess;
use crate::storage_queue::answer;
use crate::storage_queue::metadata::Metadata;
use crate::storage_queue::metadata::made_at;
use crate::storage_queue::names::is_queue_name;
use crate::storage_queue::refusal::StorageRefusal;
use crate::storage_queue::refusal::StorageResult;
use crate::storage_queue::request::QueueRequest;
use crate::storage_queue::shared::SharedStorage;
use crate::storage_queue::shared::StorageState;
use crate::xml::Xml;

/// A page of queues. The marker of the next page is the last name of this one.
pub(crate) async fn list(
    shared: &SharedStorage,
    request: &QueueRequest,
    access: &StorageAccess,
) -> StorageResult {
    let prefix = request.field("prefix").unwrap_or_default();
    let marker = request.field("marker").unwrap_or_default();
    let max = match request.field("maxresults") {
        None => limits::STORAGE_QUEUES_MAX,
        Some(text) => text
            .parse()
            .ok()
            .filter(|max| (1..=limits::STORAGE_QUEUES_MAX).contains(max))
            .ok_or_else(|| StorageRefusal::out_of_range("maxresults"))?,
    };
    let with_metadata =
        request.field("include").is_some_and(|parts| parts.split(',').any(|part| part == "metadata"));
    let (names, is_last) = names(shared, access, (prefix, marker), max).await?;
    let mut queues = Vec::with_capacity(names.len());
    for (name, created_at) in names {
        let metadata = match with_metadata {
            true => Metadata::load(shared.client(), name.as_str(), created_at).await?,
            false => Metadata::default(),
        };
        queues.push((name, metadata));
    }
    let host = request.parts.headers.get("host").and_then(|host| host.to_str().ok()).unwrap_or_default();
    let scheme = if request.is_over_tls() { "https" } else { "http" };
    let endpoint = format!("{scheme}://{host}/{}", request.account);
    let mut xml = Xml::new();
    xml.within_named("EnumerationResults", &[("ServiceEndpoint", &endpoint)], |xml| {
        xml.leaf("Prefix", prefix);
        xml.leaf("Marker", marker);
        xml.leaf("MaxResults", &max.to_string());
        xml.within("Queues", |xml| queues.iter().for_each(|(name, metadata)| show(xml, name, metadata)));
        let next = queues.last().filter(|_| !is_last).map_or("", |(name, _)| name.as_str());
        xml.leaf("NextMarker", next);
    });
    Ok(answer::xml(StatusCode::OK, xml))
}

fn show(xml: &mut Xml, name: &QueueName, metadata: &Metadata) {
    xml.within("Queue", |xml| {
        xml.leaf("Name", name.as_str());
        if metadata.iter().next().is_some() {
            xml.within("Metadata", |xml| metadata.iter().for_each(|(name, value)| xml.leaf(name, value)));
        }
    });
}

/// Up to `max` names after the marker, each with when its queue was made, and whether these are the last.
async fn names(
    app_state: &StorageState,
    access: &StorageAccess,
    (prefix, marker): (&str, &str),
    max: usize,
) -> Result<(Vec<(QueueName, Option<Timestamp>)>, bool), StorageRefusal> {
    let mut names = Vec::new();
    let mut after = match marker {
        "" => None,
        marker => Some(QueueName::new(marker).map_err(|_| StorageRefusal::out_of_range("marker"))?),
    };
    loop {
        let page = app_state.client().queues(after.as_ref(), limits::PAGE_MAX).await?;
        let Some(last) = page.last() else { return Ok((names, true)) };
        after = Some(last.name.clone());
        for queue in page {
            let name = queue.name.as_str();
            if !name.starts_with(prefix) || !is_queue_name(name) || !access.reaches(name) {
                continue;
            }
            if names.len() == max {
                return Ok((names, false));
            }
            let created_at = made_at(&queue);
            names.push((queue.name, created_at));
        }
    }
}

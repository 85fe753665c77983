//! What is asked of the service itself.

use http::StatusCode;

use crate::storage_queue::answer;
use crate::storage_queue::refusal::StorageResult;
use crate::storage_queue::shared::StorageState;
use crate::storage_queue::times::date;
use crate::xml::Xml;

/// There is one place, and it is up to date.
pub(crate) fn stats(app_state: &StorageState) -> StorageResult {
    let mut xml = Xml::new();
    xml.within("StorageServiceStats", |xml| {
        xml.within("GeoReplication", |xml| {
            xml.leaf("Status", "live");
            xml.leaf("LastSyncTime", &date(app_state.clock.now()));
        });
    });
    Ok(answer::xml(StatusCode::OK, xml))
}

//! What is asked of the service itself.

use http::StatusCode;

use crate::storage_queue::answer;
use crate::storage_queue::refused::Answer;
use crate::storage_queue::shared::House;
use crate::storage_queue::times::date;
use crate::storage_queue::xml::Xml;

/// Nothing is logged or measured for storage accounts, and no page of another origin may ask.
pub(crate) fn properties() -> Answer {
    let mut xml = Xml::new();
    xml.within("StorageServiceProperties", |xml| {
        xml.within("Logging", |xml| {
            xml.leaf("Version", "1.0");
            ["Delete", "Read", "Write"].iter().for_each(|name| xml.leaf(name, "false"));
            unkept(xml);
        });
        for name in ["HourMetrics", "MinuteMetrics"] {
            xml.within(name, |xml| {
                xml.leaf("Version", "1.0");
                xml.leaf("Enabled", "false");
                unkept(xml);
            });
        }
        xml.within("Cors", |_| {});
    });
    Ok(answer::xml(StatusCode::OK, xml))
}

fn unkept(xml: &mut Xml) {
    xml.within("RetentionPolicy", |xml| xml.leaf("Enabled", "false"));
}

/// There is one place, and it is up to date.
pub(crate) fn stats(house: &House) -> Answer {
    let mut xml = Xml::new();
    xml.within("StorageServiceStats", |xml| {
        xml.within("GeoReplication", |xml| {
            xml.leaf("Status", "live");
            xml.leaf("LastSyncTime", &date(house.clock.now()));
        });
    });
    Ok(answer::xml(StatusCode::OK, xml))
}

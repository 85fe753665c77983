//! Properties of the service: kept as they were set, and returned. Nothing is logged or measured by them; what they say of
//! pages of other origins is in force.

use axum::body::Body;
use http::StatusCode;
use serde::Deserialize;
use serde::Serialize;

use crate::engine::Client;
use crate::limits;
use crate::storage_queue::access::StorageAccess;
use crate::storage_queue::answer;
use crate::storage_queue::element;
use crate::storage_queue::element::Element;
use crate::storage_queue::records::RECORDS;
use crate::storage_queue::refusal::StorageRefusal;
use crate::storage_queue::refusal::StorageResult;
use crate::storage_queue::request::whole;
use crate::storage_queue::shared::SharedStorage;
use crate::xml::Xml;

/// Under which name they are kept. Metadata are kept under names of queues, which have no such character.
const RECORD: &str = "$properties";

/// The version of the settings for logs and metrics.
const VERSION: &str = "1.0";

/// What can be done to queues from pages of another origin.
const METHODS: [&str; 8] = ["DELETE", "GET", "HEAD", "MERGE", "POST", "OPTIONS", "PUT", "PATCH"];

/// The properties of the service.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct ServiceProperties {
    logging: Logging,
    hour_metrics: Metrics,
    minute_metrics: Metrics,
    cors: Vec<CorsRule>,
}

/// What is to be logged, and for how many days it is to be kept; without days, for ever.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Logging {
    delete: bool,
    read: bool,
    write: bool,
    days: Option<u32>,
}

/// Whether requests are to be counted, for each operation too, and for how many days.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Metrics {
    enabled: bool,
    with_operations: bool,
    days: Option<u32>,
}

/// What pages of other origins are to be allowed; texts as they were set.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CorsRule {
    pub(crate) origins: String,
    pub(crate) methods: String,
    pub(crate) allowed_headers: String,
    pub(crate) exposed_headers: String,
    pub(crate) seconds: u32,
}

/// What pages of other origins may do; the first rule that fits holds.
pub(crate) async fn cors_rules(client: &Client) -> Result<Vec<CorsRule>, StorageRefusal> {
    Ok(load(client).await?.cors)
}

pub(crate) async fn show(shared: &SharedStorage) -> StorageResult {
    let mut xml = Xml::new();
    load(shared.client()).await?.write(&mut xml);
    Ok(answer::xml(StatusCode::OK, xml))
}

/// Sets those that the body has; the others stay.
pub(crate) async fn set(shared: &SharedStorage, body: Body, access: &StorageAccess) -> StorageResult {
    let body = whole(&shared.reading, body).await?;
    let _alone = shared.changing.lock().await;
    let mut properties = load(shared.client()).await?;
    element::read(&body, "StorageServiceProperties", |root| properties.change(root))?;
    let is_default = properties == ServiceProperties::default();
    let record = (!is_default).then_some(&properties);
    RECORDS.store(&access.acting(shared.client())?, RECORD, record).await?;
    Ok(answer::empty(StatusCode::ACCEPTED))
}

async fn load(client: &Client) -> Result<ServiceProperties, StorageRefusal> {
    Ok(RECORDS.load(client, RECORD).await?.unwrap_or_default())
}

impl ServiceProperties {
    fn change(&mut self, root: Element<'_>) -> Result<(), StorageRefusal> {
        let [logging, hours, minutes, cors] =
            root.parts(["Logging", "HourMetrics", "MinuteMetrics", "Cors"])?;
        if let Some(logging) = logging {
            self.logging = Logging::read(logging)?;
        }
        if let Some(metrics) = hours {
            self.hour_metrics = Metrics::read(metrics)?;
        }
        if let Some(metrics) = minutes {
            self.minute_metrics = Metrics::read(metrics)?;
        }
        if let Some(cors) = cors {
            self.cors = read_rules(cors)?;
        }
        Ok(())
    }

    fn write(&self, xml: &mut Xml) {
        xml.within("StorageServiceProperties", |xml| {
            xml.within("Logging", |xml| self.logging.write(xml));
            xml.within("HourMetrics", |xml| self.hour_metrics.write(xml));
            xml.within("MinuteMetrics", |xml| self.minute_metrics.write(xml));
            xml.within("Cors", |xml| self.cors.iter().for_each(|rule| rule.write(xml)));
        });
    }
}

impl Logging {
    fn read(element: Element<'_>) -> Result<Logging, StorageRefusal> {
        let [version, delete, read, write, retention] =
            element.all_parts(["Version", "Delete", "Read", "Write", "RetentionPolicy"])?;
        check_version(version)?;
        Ok(Logging {
            delete: delete.flag()?,
            read: read.flag()?,
            write: write.flag()?,
            days: read_days(retention)?,
        })
    }

    fn write(&self, xml: &mut Xml) {
        xml.leaf("Version", VERSION);
        for (name, is_logged) in [("Delete", self.delete), ("Read", self.read), ("Write", self.write)] {
            xml.leaf(name, &is_logged.to_string());
        }
        write_days(self.days, xml);
    }
}

impl Metrics {
    fn read(element: Element<'_>) -> Result<Metrics, StorageRefusal> {
        let [version, enabled, operations, retention] =
            element.parts(["Version", "Enabled", "IncludeAPIs", "RetentionPolicy"])?;
        check_version(version.ok_or_else(|| element.lacks("Version"))?)?;
        let enabled = enabled.ok_or_else(|| element.lacks("Enabled"))?.flag()?;
        let with_operations = match operations {
            Some(operations) => operations.flag()?,
            None if enabled => return Err(element.lacks("IncludeAPIs")),
            None => false,
        };
        let days = retention.map_or(Ok(None), read_days)?;
        Ok(Metrics { enabled, with_operations: enabled && with_operations, days })
    }

    fn write(&self, xml: &mut Xml) {
        xml.leaf("Version", VERSION);
        xml.leaf("Enabled", &self.enabled.to_string());
        if self.enabled {
            xml.leaf("IncludeAPIs", &self.with_operations.to_string());
        }
        write_days(self.days, xml);
    }
}

impl CorsRule {
    fn read(element: Element<'_>) -> Result<CorsRule, StorageRefusal> {
        let [origins, methods, allowed_headers, exposed_headers, seconds] = element.all_parts([
            "AllowedOrigins",
            "AllowedMethods",
            "AllowedHeaders",
            "ExposedHeaders",
            "MaxAgeInSeconds",
        ])?;
        let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let known = |text: &str| text.split(',').all(|method| METHODS.contains(&method.trim()));
        Ok(CorsRule {
            origins: origins.value(given)?,
            methods: methods.value(|text| known(text).then(|| text.to_owned()))?,
            allowed_headers: allowed_headers.text(),
            exposed_headers: exposed_headers.text(),
            seconds: seconds.value(|text| text.parse().ok())?,
        })
    }

    fn texts(&self) -> [(&'static str, &str); 4] {
        [
            ("AllowedOrigins", &self.origins),
            ("AllowedMethods", &self.methods),
            ("AllowedHeaders", &self.allowed_headers),
            ("ExposedHeaders", &self.exposed_headers),
        ]
    }

    fn write(&self, xml: &mut Xml) {
        xml.within("CorsRule", |xml| {
            self.texts().into_iter().for_each(|(name, text)| xml.leaf(name, text));
            xml.leaf("MaxAgeInSeconds", &self.seconds.to_string());
        });
    }
}

fn read_rules(element: Element<'_>) -> Result<Vec<CorsRule>, StorageRefusal> {
    let rules = element.all("CorsRule")?.into_iter().map(CorsRule::read);
    let rules = rules.collect::<Result<Vec<CorsRule>, StorageRefusal>>()?;
    let bytes: usize = rules.iter().flat_map(CorsRule::texts).map(|(_, text)| text.len()).sum();
    let (rules_max, bytes_max) = (limits::STORAGE_CORS_RULES_MAX, limits::STORAGE_CORS_BYTES_MAX);
    if rules.len() > rules_max || bytes > bytes_max {
        let message = format!("<Cors> has at most {rules_max} rules, of {bytes_max} bytes together");
        return Err(StorageRefusal::bad("InvalidXmlDocument", message));
    }
    Ok(rules)
}

fn check_version(element: Element<'_>) -> Result<(), StorageRefusal> {
    element.value(|text| (text == VERSION).then_some(()))
}

fn read_days(element: Element<'_>) -> Result<Option<u32>, StorageRefusal> {
    let [enabled, days] = element.parts(["Enabled", "Days"])?;
    if !enabled.ok_or_else(|| element.lacks("Enabled"))?.flag()? {
        return Ok(None);
    }
    let possible =
        |text: &str| text.parse().ok().filter(|days| (1..=limits::STORAGE_RETENTION_DAYS_MAX).contains(days));
    days.ok_or_else(|| element.lacks("Days"))?.value(possible).map(Some)
}

fn write_days(days: Option<u32>, xml: &mut Xml) {
    xml.within("RetentionPolicy", |xml| {
        xml.leaf("Enabled", &days.is_some().to_string());
        if let Some(days) = days {
            xml.leaf("Days", &days.to_string());
        }
    });
}

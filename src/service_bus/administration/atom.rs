//! Entries and feeds, as the SDKs read them.

use std::borrow::Cow;

use axum::response::Response;
use http::StatusCode;

use crate::api::WireTime;
use crate::clock::Timestamp;
use crate::inbound::browser::bytes_as;
use crate::service_bus::administration::host::Caller;
use crate::xml::Xml;

/// The namespace of descriptions of entities.
pub(crate) const SERVICE_BUS: &str = "http://schemas.microsoft.com/netservices/2010/10/servicebus/connect";

/// The namespace of counts.
pub(crate) const COUNTS: &str = "http://schemas.microsoft.com/netservices/2011/06/servicebus";

/// The namespace in which an element says of which type it is.
pub(crate) const INSTANCE: &str = "http://www.w3.org/2001/XMLSchema-instance";

/// The namespace of those types.
pub(crate) const SCHEMA: &str = "http://www.w3.org/2001/XMLSchema";

const ATOM: &str = "http://www.w3.org/2005/Atom";

/// What an entry is about.
pub(crate) struct AtomEntry<'a> {
    /// Its name, which is the last part of its path.
    pub(crate) title: Cow<'a, str>,
    /// Its path, with the words between names as the SDKs look for them.
    pub(crate) path: String,
    pub(crate) published: Timestamp,
    pub(crate) updated: Timestamp,
    /// The element that describes it, such as `QueueDescription`.
    pub(crate) element: &'static str,
}

impl AtomEntry<'_> {
    fn write(
        &self,
        xml: &mut Xml,
        (caller, namespace): (&Caller, &[(&str, &str)]),
        inside: impl FnOnce(&mut Xml),
    ) {
        xml.within_named("entry", namespace, |xml| {
            let id = caller.url(&self.path);
            xml.leaf("id", &id);
            xml.within_named("title", &[("type", "text")], |xml| xml.text(&self.title));
            xml.leaf("published", &instant(self.published));
            xml.leaf("updated", &instant(self.updated));
            xml.within("author", |xml| xml.leaf("name", caller.namespace()));
            xml.within_named("link", &[("rel", "self"), ("href", &id)], |_| {});
            xml.within_named("content", &[("type", "application/xml")], |xml| {
                xml.within_named(self.element, &[("xmlns", SERVICE_BUS), ("xmlns:i", INSTANCE)], inside);
            });
        });
    }

    /// Answers with this entry.
    pub(crate) fn answer(
        &self,
        status: StatusCode,
        caller: &Caller,
        inside: impl FnOnce(&mut Xml),
    ) -> Response {
        let mut xml = Xml::new();
        self.write(&mut xml, (caller, &[("xmlns", ATOM)]), inside);
        bytes_as(status, "application/atom+xml; type=entry; charset=utf-8", xml.into_text())
    }
}

/// A page of entries.
pub(crate) struct AtomFeed<'a> {
    xml: &'a mut Xml,
    caller: &'a Caller,
}

impl AtomFeed<'_> {
    /// Writes a page of what is at a path, with where the next one is if there may be one.
    pub(crate) fn answer(
        (caller, path): (&Caller, &str),
        now: Timestamp,
        next: Option<String>,
        entries: impl FnOnce(&mut AtomFeed<'_>),
    ) -> Response {
        let (mut xml, id) = (Xml::new(), caller.url(path));
        xml.within_named("feed", &[("xmlns", ATOM)], |xml| {
            xml.within_named("title", &[("type", "text")], |xml| xml.text(path));
            xml.leaf("id", &id);
            xml.leaf("updated", &instant(now));
            xml.within_named("link", &[("rel", "self"), ("href", &id)], |_| {});
            if let Some(next) = next {
                xml.within_named("link", &[("rel", "next"), ("href", &next)], |_| {});
            }
            entries(&mut AtomFeed { xml, caller });
        });
        bytes_as(StatusCode::OK, "application/atom+xml; type=feed; charset=utf-8", xml.into_text())
    }

    pub(crate) fn entry(&mut self, entry: &AtomEntry<'_>, inside: impl FnOnce(&mut Xml)) {
        entry.write(self.xml, (self.caller, &[]), inside);
    }
}

/// An instant as the documents say it.
pub(crate) fn instant(at: Timestamp) -> String {
    WireTime(at).to_string()
}

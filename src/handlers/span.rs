//! The span a message is handled in, as a collector knows it: it continues the trace of who sent the message.

use opentelemetry::propagation::Extractor;
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::TraceContextExt;
use opentelemetry::trace::TraceFlags;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

use crate::header::Properties;
use crate::header::PropertyValue;
use crate::header::TRACE;

/// Properties, as what carries a trace.
struct SpanCarrier<'a>(&'a Properties);

impl Extractor for SpanCarrier<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        match self.0.get(key) {
            Some(PropertyValue::Text(text)) => Some(text),
            _ => None,
        }
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(String::as_str).collect()
    }
}

/// Makes a span a child of the sender's, if the message says of which trace it is. Nothing may have begun in the span yet:
/// whose child it is cannot be changed then.
pub(crate) fn continue_sender(span: &Span, properties: &Properties) {
    if !properties.contains_key(TRACE) {
        return;
    }
    let sender = TraceContextPropagator::new().extract(&SpanCarrier(properties));
    if sender.span().span_context().is_valid() {
        // Without a collector there is no span to put anywhere.
        let _ = span.set_parent(sender);
    }
}

/// A span as W3C writes it, if spans are exported.
pub(crate) fn written(span: &Span) -> Option<String> {
    let context = span.context();
    let span = context.span().span_context().clone();
    let flags = span.trace_flags() & TraceFlags::SAMPLED;
    span.is_valid().then(|| format!("00-{}-{}-{flags:02x}", span.trace_id(), span.span_id()))
}

//! The trace a message belongs to: its sender's, which its handling continues.

use tracing::Span;

#[cfg(feature = "otlp")]
use crate::handlers::span;
use crate::header::PropertyValue;
use crate::header::TRACE;
use crate::processor::Context;

/// The trace that is to be continued by who handles the message: the span it is handled in, where spans are exported, and
/// else its sender's.
pub(crate) fn trace(context: &Context) -> Option<String> {
    trace_in(&Span::current(), context)
}

/// As [`trace`], with the span it is handled in.
pub(crate) fn trace_in(span: &Span, context: &Context) -> Option<String> {
    #[cfg(feature = "otlp")]
    if let Some(own) = span::written(span) {
        return Some(own);
    }
    let _ = span;
    of_sender(context).map(str::to_owned)
}

/// The trace that the sender gave, when it is one that is well formed.
fn of_sender(context: &Context) -> Option<&str> {
    let Some(PropertyValue::Text(trace)) = context.message().headers.properties.get(TRACE) else {
        return None;
    };
    let is_trace = trace.len() == 55 && trace.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit());
    is_trace.then_some(trace)
}

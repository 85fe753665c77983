//! Spans to a collector, by OTLP over HTTP: where to, the variables of OpenTelemetry say.

use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::registry::LookupSpan;

use crate::cli::failure::CliFailure;

/// Variables one of which has to be there: without a collector nothing is exported.
const COLLECTORS: [&str; 2] = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"];

/// What exports. Dropped, it sends what is left.
pub(crate) struct Spans(SdkTracerProvider);

impl Drop for Spans {
    fn drop(&mut self) {
        // A collector that is not there is no reason to keep a daemon from stopping.
        let _ = self.0.shutdown();
    }
}

/// The layer that exports the spans of handlers, if somebody has said where to.
pub(crate) fn export<S>() -> Result<Option<(impl Layer<S>, Spans)>, CliFailure>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    if COLLECTORS.iter().all(|name| std::env::var_os(name).is_none()) {
        return Ok(None);
    }
    let exporter = SpanExporter::builder().with_http().build()?;
    let resource = Resource::builder().with_service_name(env!("CARGO_PKG_NAME")).build();
    let provider = SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build();
    // What the exporter does itself would be exported again, and again.
    let own = Targets::new().with_target("seriatim", LevelFilter::INFO);
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("seriatim"));
    // A span that is activated when it is entered can no longer be told whose child it is.
    let layer = layer.with_context_activation(false).with_filter(own);
    Ok(Some((layer, Spans(provider))))
}

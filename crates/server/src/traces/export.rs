//! Spans, and where they go.

use super::Fact;
use super::environment::wanted;
use super::send::Sender;
use axum::http::HeaderMap;
use cofferdam_core::{EndingKind, Error, ErrorKind, Result};
use opentelemetry::propagation::TextMapPropagator as _;
use opentelemetry::trace::{
    SpanBuilder, SpanKind, Status, TraceContextExt, Tracer as _, TracerProvider as _,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_http::HeaderExtractor;
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use std::borrow::Cow;
use std::time::Duration;

/// What the spans are said to come from, unless the environment says otherwise.
const SERVICE: &str = "cofferdam";
/// How long the last spans may take to be sent at the end.
const LAST: Duration = Duration::from_secs(5);

/// Where traces go, if anywhere. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Traces(Option<SdkTracerProvider>);

impl Traces {
    /// Traces that go where the environment says, in a way that it says; nowhere if it does not.
    ///
    /// Called where there is a runtime, which sends them. `log` takes a line for the operator.
    pub fn by_environment(log: fn(&str)) -> Result<Self> {
        let Some(protocol) = wanted(|name| std::env::var(name).ok())? else {
            return Ok(Self(None));
        };
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(Sender::new(log)?)
            .with_protocol(protocol)
            .build()
            .map_err(|error| {
                Error::new(ErrorKind::Config, "prepare to send traces")
                    .source(error)
                    .hint("Look at the variables whose names begin with OTEL_EXPORTER_OTLP_.")
            })?;
        let mut resource = Resource::builder();
        if !is_named() {
            resource = resource.with_service_name(SERVICE);
        }
        let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
        let provider = SdkTracerProvider::builder()
            .with_resource(resource.with_attribute(version).build())
            .with_batch_exporter(exporter)
            .build();
        Ok(Self(Some(provider)))
    }

    /// Whether they go anywhere.
    pub(crate) fn are_on(&self) -> bool {
        self.0.is_some()
    }

    /// The span of a request, which goes on with the trace that its caller names.
    pub(crate) fn request(&self, name: String, headers: &HeaderMap) -> Span {
        let Some(provider) = &self.0 else { return Span(None) };
        let tracer = provider.tracer(SERVICE);
        let parent = TraceContextPropagator::new()
            .extract_with_context(&Context::new(), &HeaderExtractor(headers));
        begun(&tracer, name.into(), SpanKind::Server, &parent)
    }

    /// Sends what was not sent yet, as far as that is possible soon.
    pub async fn end(self) {
        let Some(provider) = self.0 else { return };
        // What cannot be sent now is lost, which its sender said already.
        let last = move || provider.shutdown_with_timeout(LAST).ok();
        tokio::task::spawn_blocking(last).await.ok();
    }
}

/// The name that a kind has in every report.
fn named(kind: EndingKind) -> String {
    let name = serde_json::to_value(kind).unwrap_or_default();
    name.as_str().unwrap_or_default().to_owned()
}

/// Whether the environment says what the spans come from.
fn is_named() -> bool {
    let said = |name| std::env::var(name).unwrap_or_default();
    let in_attributes = |pair: &str| pair.trim_start().starts_with("service.name=");
    !said("OTEL_SERVICE_NAME").is_empty()
        || said("OTEL_RESOURCE_ATTRIBUTES").split(',').any(in_attributes)
}

fn begun(tracer: &SdkTracer, name: Cow<'static, str>, kind: SpanKind, parent: &Context) -> Span {
    let span = tracer.build_with_context(SpanBuilder::from_name(name).with_kind(kind), parent);
    Span(Some((tracer.clone(), parent.with_span(span))))
}

/// Something that takes a while. It ends with the last clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Span(Option<(SdkTracer, Context)>);

impl Span {
    /// Whether anybody is told of it.
    pub(crate) fn is_on(&self) -> bool {
        self.0.as_ref().is_some_and(|(_, context)| context.span().is_recording())
    }

    /// A part of it, which begins now.
    pub(crate) fn part(&self, name: &'static str) -> Self {
        let Some((tracer, context)) = &self.0 else { return Self(None) };
        begun(tracer, name.into(), SpanKind::Internal, context)
    }

    /// Tells one thing about it.
    pub(crate) fn tell(&self, fact: Fact<'_>) {
        let Some((_, context)) = &self.0 else { return };
        let fact = match fact {
            Fact::Method(method) => KeyValue::new("http.request.method", method),
            Fact::Route(route) => KeyValue::new("http.route", route.to_owned()),
            Fact::Status(status) => {
                if status >= 500 {
                    context.span().set_status(Status::error(""));
                }
                KeyValue::new("http.response.status_code", i64::from(status))
            }
            Fact::Sandbox(id) => KeyValue::new("cofferdam.sandbox.id", id.to_string()),
            Fact::Exec(id) => KeyValue::new("cofferdam.exec.id", id.to_string()),
            Fact::Ending(kind) => KeyValue::new("cofferdam.exec.ending", named(kind)),
            Fact::ExitCode(code) => KeyValue::new("cofferdam.exec.exit_code", i64::from(code)),
        };
        context.span().set_attribute(fact);
    }

    /// Says that what it stands for failed. Why is not said: errors name things.
    pub(crate) fn failed(&self) {
        if let Some((_, context)) = &self.0 {
            context.span().set_status(Status::error(""));
        }
    }
}

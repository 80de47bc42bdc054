//! Whether traces are wanted, and in a way that is understood here.

use cofferdam_core::{Error, ErrorKind, Result};
use opentelemetry_otlp::Protocol;

/// Where they go; the first goes before the second, which is for all signals.
const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];
const PROTOCOLS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"];
const DISABLED: &str = "OTEL_SDK_DISABLED";
const EXPORTER: &str = "OTEL_TRACES_EXPORTER";
const SAMPLER: &str = "OTEL_TRACES_SAMPLER";
const SHARE: &str = "OTEL_TRACES_SAMPLER_ARG";

/// How traces are to be sent, if they are. What the exporter would pass over in silence is refused: somebody who
/// asked for traces is not to wait for them in vain.
pub(super) fn wanted(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Protocol>> {
    let said = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
    if said(DISABLED).is_some_and(|value| value.trim().eq_ignore_ascii_case("true")) {
        return Ok(None);
    }
    let has_endpoint = ENDPOINTS.iter().any(|name| said(name).is_some());
    let is_wanted = match said(EXPORTER).as_deref().map(str::trim) {
        None => has_endpoint,
        Some("otlp") => true,
        Some("none") => false,
        Some(other) => return Err(unknown(EXPORTER, other, "otlp or none")),
    };
    if !is_wanted {
        return Ok(None);
    }
    let protocol = match PROTOCOLS.iter().find_map(|name| said(name)).as_deref() {
        None | Some("http/protobuf") => Protocol::HttpBinary,
        Some("http/json") => Protocol::HttpJson,
        Some(other) => return Err(unknown(PROTOCOLS[1], other, "http/protobuf or http/json")),
    };
    check_sampler(said(SAMPLER).as_deref(), said(SHARE).as_deref())?;
    Ok(Some(protocol))
}

fn check_sampler(sampler: Option<&str>, share: Option<&str>) -> Result<()> {
    let names = "always_on, always_off or traceidratio, or one of them with parentbased_ before it";
    match sampler.map(|sampler| sampler.strip_prefix("parentbased_").unwrap_or(sampler)) {
        None | Some("always_on" | "always_off") => Ok(()),
        Some("traceidratio") => {
            let is_share = |share: &str| share.parse().is_ok_and(|n: f64| (0.0..=1.0).contains(&n));
            match share {
                Some(share) if !is_share(share) => Err(unknown(SHARE, share, "0.0 to 1.0")),
                Some(_) => Ok(()),
                None => Err(unknown(SHARE, "", "0.0 to 1.0")),
            }
        }
        Some(_) => Err(unknown(SAMPLER, sampler.unwrap_or_default(), names)),
    }
}

fn unknown(name: &str, value: &str, good: &str) -> Error {
    Error::new(ErrorKind::Config, format!("{name} is {value:?}, which is not understood here"))
        .hint(format!("Use {good}, or set {DISABLED}=true."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(variables: &[(&str, &str)]) -> Result<bool> {
        let found = super::wanted(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        });
        Ok(found?.is_some())
    }

    const AT: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318");

    #[test]
    fn traces_are_sent_where_somebody_says_where() {
        assert!(!wanted(&[]).unwrap());
        assert!(!wanted(&[("OTEL_SERVICE_NAME", "x")]).unwrap());
        assert!(!wanted(&[(AT.0, " ")]).unwrap());
        assert!(wanted(&[AT]).unwrap());
        assert!(wanted(&[(ENDPOINTS[0], "http://x/v1/traces")]).unwrap());
        assert!(wanted(&[("OTEL_TRACES_EXPORTER", "otlp")]).unwrap());
        for off in [("OTEL_SDK_DISABLED", "TRUE"), ("OTEL_TRACES_EXPORTER", "none")] {
            assert!(!wanted(&[AT, off]).unwrap(), "{off:?}");
        }
        assert!(wanted(&[AT, ("OTEL_SDK_DISABLED", "false")]).unwrap());
    }

    #[test]
    fn what_would_be_passed_over_is_refused_by_its_name() {
        for (name, good, bad) in [
            (PROTOCOLS[1], "http/json", "grpc"),
            (EXPORTER, "otlp", "zipkin"),
            (SAMPLER, "parentbased_always_off", "jaeger_remote"),
        ] {
            assert!(wanted(&[AT, (name, good)]).unwrap(), "{name}");
            let error = wanted(&[AT, (name, bad)]).unwrap_err();
            assert!(error.kind == ErrorKind::Config && error.message.contains(name), "{error}");
        }
        let sampler = (SAMPLER, "traceidratio");
        assert!(wanted(&[AT, sampler, (SHARE, "0.25")]).unwrap());
        for bad in ["2", "x", "NaN"] {
            assert!(wanted(&[AT, sampler, (SHARE, bad)]).is_err(), "{bad}");
        }
        assert!(wanted(&[AT, sampler]).is_err());
    }
}

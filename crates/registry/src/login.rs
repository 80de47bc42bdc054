//! From a challenge to what is said to the registry from then on.

use crate::challenge::Challenge;
use crate::credentials::Found;
use crate::failure::{Failure, of_status};
use crate::http::{Http, Request, host};
use crate::limits::MAX_TOKEN_BYTES;
use crate::repository::read_bounded;
use crate::secret::{Credentials, Secret};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cofferdam_core::{Error, ErrorKind};
use cofferdam_image::Remote;
use reqwest::Url;
use reqwest::header::HeaderValue;
use serde::Deserialize;

/// Who we say that we are where a token is given for a token.
const CLIENT: &str = "cofferdam";

/// What a server of tokens answers.
#[derive(Deserialize)]
struct Granted {
    #[serde(default)]
    token: Option<String>,
    #[serde(default)]
    access_token: Option<String>,
}

/// Meets a challenge of a registry.
pub(crate) async fn meet(
    http: &Http,
    registry: &Url,
    remote: &Remote,
    challenge: &Challenge,
    found: &Found,
) -> Result<HeaderValue, Failure> {
    match (challenge, &found.credentials) {
        (_, Some(Credentials::Token(token))) => bearer(token),
        (Challenge::Basic, Some(Credentials::Password(name, password))) => basic(name, password),
        (Challenge::Basic, _) => Err(unauthorized(remote, found)),
        (Challenge::Bearer { realm, service }, credentials) => {
            let token = token(http, registry, remote, (realm, service.as_deref()), credentials);
            match token.await? {
                Some(token) => bearer(&token),
                None => Err(unauthorized(remote, found)),
            }
        }
    }
}

/// What is said where the registry knows us and refuses, or does not know us.
pub(crate) fn unauthorized(remote: &Remote, found: &Found) -> Failure {
    let registry = &remote.registry;
    let known = match found.credentials {
        Some(_) => "refuses these credentials, or there is no such image",
        None => "wants credentials, or there is no such image",
    };
    let looked = found.looked.join("; ");
    let what = format!("{registry} {known}: {remote} ({looked})");
    let hint = format!(
        "Check the name, and log in with `docker login {registry}` or `podman login {registry}`, or \
         name a file of credentials in REGISTRY_AUTH_FILE."
    );
    Failure::Lasting(Error::new(ErrorKind::Denied, what).hint(hint))
}

/// A token for reading one repository. `None` where the server of tokens refuses one.
async fn token(
    http: &Http,
    registry: &Url,
    remote: &Remote,
    (realm, service): (&str, Option<&str>),
    credentials: &Option<Credentials>,
) -> Result<Option<Secret>, Failure> {
    let mut url = Url::parse(realm).map_err(|_| odd(registry, "names no place for tokens"))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(odd(registry, "names a place for tokens with a password"));
    }
    http.check_scheme(registry, &url)?;
    let scope = format!("repository:{}:pull", remote.repository);
    let mut request = Request::get(url.clone());
    match credentials {
        Some(Credentials::Identity(identity)) => {
            let mut form = Url::parse("form:").map_err(|_| odd(registry, "has no name"))?;
            form.query_pairs_mut()
                .append_pair("grant_type", "refresh_token")
                .append_pair("service", service.unwrap_or_default())
                .append_pair("scope", &scope)
                .append_pair("client_id", CLIENT)
                .append_pair("refresh_token", identity.reveal());
            request.form = form.query().map(str::to_owned);
        }
        other => {
            if let Some(service) = service {
                url.query_pairs_mut().append_pair("service", service);
            }
            url.query_pairs_mut().append_pair("scope", &scope);
            request.url = url;
            if let Some(Credentials::Password(name, password)) = other {
                request.authorization = Some(basic(name, password)?);
            }
        }
    }
    let place = host(&request.url);
    let answer = http.send(request).await?;
    match answer.status().as_u16() {
        200 => {}
        400 | 401 | 403 => return Ok(None),
        _ => return Err(of_status(&place, "a token", answer.status())),
    }
    let body = read_bounded(answer, &place, MAX_TOKEN_BYTES).await?;
    let granted: Option<Granted> = serde_json::from_slice(&body).ok();
    let token = granted.and_then(|granted| granted.token.or(granted.access_token));
    match token.filter(|token| !token.is_empty()) {
        Some(token) => Ok(Some(Secret::new(token))),
        None => Err(odd(registry, "names a place for tokens that gives none")),
    }
}

fn odd(registry: &Url, what: &str) -> Failure {
    let error = Error::new(ErrorKind::Protocol, format!("{} {what}", host(registry)));
    Failure::Lasting(error.hint("Check the name of the registry, and whether it is healthy."))
}

fn bearer(token: &Secret) -> Result<HeaderValue, Failure> {
    header(&format!("Bearer {}", token.reveal()))
}

fn basic(name: &str, password: &Secret) -> Result<HeaderValue, Failure> {
    header(&format!("Basic {}", STANDARD.encode(format!("{name}:{}", password.reveal()))))
}

fn header(text: &str) -> Result<HeaderValue, Failure> {
    let mut header = HeaderValue::from_str(text).map_err(|_| {
        // Neither the text nor the cause is shown: it is a secret.
        let error = Error::new(ErrorKind::Protocol, "a token has letters that none can have");
        Failure::Lasting(error.hint("Log in anew."))
    })?;
    header.set_sensitive(true);
    Ok(header)
}

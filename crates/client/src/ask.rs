//! One request.

use crate::Client;
use crate::answer::{Failure, checked, object};
use crate::place;
use cofferdam_core::{Error, ErrorKind, Result};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue};
use reqwest::{Body, Method, RequestBuilder, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Display;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How much longer than it was to take an answer may take.
const GRACE: Duration = Duration::from_secs(30);

/// A request that is being put together.
#[must_use]
pub(crate) struct Ask {
    client: Client,
    request: Result<RequestBuilder>,
    query: Vec<(&'static str, String)>,
}

impl Client {
    /// A request for what is below these names.
    pub(crate) fn ask(&self, method: Method, names: &[&str]) -> Ask {
        Ask { client: self.clone(), request: self.begin(method, names), query: Vec::new() }
    }

    fn begin(&self, method: Method, names: &[&str]) -> Result<RequestBuilder> {
        // They would be taken for a step up, and lead to another route.
        if let Some(bad) = names.iter().find(|name| matches!(**name, "" | "." | "..")) {
            let what = format!("there is nothing called {bad:?}");
            return Err(Error::new(ErrorKind::NotFound, what).hint("Give a whole name or id."));
        }
        let mut url = self.0.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(names);
        }
        let request = self.0.http.request(method, url);
        Ok(match &self.0.authorization {
            Some(key) => request.header(AUTHORIZATION, key.clone()),
            None => request,
        })
    }
}

impl Ask {
    fn with(mut self, add: impl FnOnce(RequestBuilder) -> RequestBuilder) -> Self {
        self.request = self.request.map(add);
        self
    }

    /// A parameter.
    pub(crate) fn query(mut self, name: &'static str, value: impl Display) -> Self {
        self.query.push((name, value.to_string()));
        self
    }

    /// The same, if there is a value.
    pub(crate) fn perhaps(self, name: &'static str, value: Option<impl Display>) -> Self {
        match value {
            Some(value) => self.query(name, value),
            None => self,
        }
    }

    /// The path of a file.
    pub(crate) fn path(self, path: &[u8]) -> Self {
        let place::Named { text, base64 } = place::named(path);
        self.perhaps("path", text).perhaps("path_base64", base64)
    }

    pub(crate) fn header(self, name: HeaderName, value: &str) -> Self {
        let Ok(value) = HeaderValue::from_str(value) else { return self };
        self.with(|request| request.header(name, value))
    }

    /// An object as the body.
    pub(crate) fn object(mut self, object: &impl Serialize) -> Self {
        match serde_json::to_vec(object) {
            Ok(body) => self.body("application/json", body),
            Err(cause) => {
                let what = "the request cannot be written as JSON";
                self.request = Err(Error::new(ErrorKind::Usage, what).source(cause));
                self
            }
        }
    }

    /// Bytes as the body.
    pub(crate) fn body(self, kind: &'static str, body: impl Into<Body>) -> Self {
        self.with(|request| request.header(CONTENT_TYPE, kind).body(body))
    }

    /// An answer that comes after so long at most, and a little.
    pub(crate) fn within(self, patience: Duration) -> Self {
        self.with(|request| request.timeout(patience.saturating_add(GRACE)))
    }

    /// Sends it. What the server says of an error is one.
    pub(crate) async fn send(self) -> Result<Response, Failure> {
        let Self { client, request, query } = self;
        let request = request.map_err(Failure::Here)?.build();
        let mut request = request.map_err(|cause| Failure::way(&client, cause))?;
        if !query.is_empty() {
            request.url_mut().query_pairs_mut().extend_pairs(query);
        }
        let sent = client.0.http.execute(request).await;
        let response = sent.map_err(|cause| Failure::way(&client, cause))?;
        client.0.has_answered.store(true, Ordering::Relaxed);
        checked(&client, response).await
    }

    /// Sends it and reads the object that is answered.
    pub(crate) async fn read<T: DeserializeOwned>(self) -> Result<T> {
        Ok(self.try_read().await?)
    }

    pub(crate) async fn try_read<T: DeserializeOwned>(self) -> Result<T, Failure> {
        let client = self.client.clone();
        let response = self.send().await?;
        object(&client, response).await
    }

    /// Sends it, where nothing is answered.
    pub(crate) async fn done(self) -> Result<()> {
        Ok(self.try_done().await?)
    }

    pub(crate) async fn try_done(self) -> Result<(), Failure> {
        self.send().await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Address;

    #[tokio::test]
    async fn a_name_leads_to_no_other_route() {
        let client = Client::new(Address::parse("http://127.0.0.1:1").unwrap(), None).unwrap();
        let path = |name: &str| {
            let asked = client.ask(Method::GET, &["v1", "sandboxes", name]).request?;
            Ok::<_, Error>(asked.build().unwrap().url().path().to_owned())
        };
        for name in ["", ".", ".."] {
            let error = path(name).unwrap_err();
            assert!(error.kind == ErrorKind::NotFound && error.hint.is_some(), "{name:?}");
        }
        // The control: what only looks so is a name.
        assert_eq!(path("a/..").unwrap(), "/v1/sandboxes/a%2F..");
        assert_eq!(path("%2e%2e").unwrap(), "/v1/sandboxes/%252e%252e");
    }
}

//! A provider for a test, and a plain client of it.

#![allow(dead_code, reason = "each test takes what it needs")]

use core::time::Duration;

use holdoff_herd::serve::scenario::Scenario;
use holdoff_herd::serve::{Handle, Server, ServerConfig};
use reqwest::{Client, Response};
use serde_json::{Value, json};

/// The headers that say when to come back.
pub(crate) const HINTS: [&str; 3] = ["retry-after", "retry-after-ms", "x-should-retry"];

#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) handle: Handle,
}

impl Served {
    pub(crate) async fn start(config: ServerConfig) -> Self {
        Self { handle: Server::start(config).await.expect("it starts") }
    }

    /// A provider that plays `scenario`, a text of TOML.
    pub(crate) async fn playing(scenario: &str) -> Self {
        let scenario = Scenario::from_toml(scenario).expect("a scenario");
        Self::start(ServerConfig { scenario, ..ServerConfig::default() }).await
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.handle.addr())
    }

    pub(crate) async fn get(&self, path: &str) -> Response {
        self.try_get(path).await.expect("an answer")
    }

    pub(crate) async fn try_get(&self, path: &str) -> reqwest::Result<Response> {
        client().get(self.url(path)).send().await
    }

    pub(crate) async fn post(
        &self,
        path: &str,
        key: &str,
        body: &Value,
    ) -> reqwest::Result<Response> {
        let request = client().post(self.url(path)).header("x-api-key", key);
        request.json(body).send().await
    }
}

pub(crate) fn prompt(is_stream: bool) -> Value {
    json!({
        "model": "a-model",
        "max_tokens": 20,
        "stream": is_stream,
        "messages": [{ "role": "user", "content": "Who are you?" }],
    })
}

pub(crate) fn header<'a>(response: &'a Response, name: &str) -> Option<&'a str> {
    response.headers().get(name).map(|value| value.to_str().expect("ASCII"))
}

/// One that follows no redirect, and ends a test that hangs.
pub(crate) fn client() -> Client {
    let client = Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
    client.timeout(Duration::from_secs(60)).build().expect("a client")
}

//! The guard over real sockets, against a server that does what servers do.

mod bodies;
mod chaos;
mod connecting;
mod events;
mod failures;
mod hints;
mod http2;
mod memory;
#[cfg(feature = "middleware")]
mod middleware;
mod nesting;
mod redirects;
mod safety;
mod server;
mod timeouts;
#[cfg(feature = "tracing")]
mod traced;
mod upstreams;

use core::time::Duration;

use holdoff_reqwest::{
    BackoffConfig, Error, GaveUp, Guard, Guarded, Policy, PolicyConfig, Stop, Upstream, valid,
};
use reqwest::{Client, Response};

use self::server::Server;

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// Three attempts, next to no time between them; no hint of a second or more is waited for.
const QUICK: PolicyConfig =
    PolicyConfig::new(valid!(BackoffConfig::constant(Duration::from_millis(1)).build()))
        .with_max_attempts(3)
        .with_max_hint(millis(900));

const POLICY: Policy = valid!(QUICK.build());

fn client() -> Client {
    Client::builder().no_proxy().build().expect("a client")
}

fn guarded(guard: impl Into<Guard>) -> Guarded {
    Guarded::new(client(), guard)
}

fn quick() -> Guarded {
    guarded(Upstream::new(POLICY))
}

/// Why an answer that is a failure is the last one, and after how many attempts.
fn gave_up(response: &Response) -> (Stop, u32) {
    let gave_up = response.extensions().get::<GaveUp<()>>().expect("it is a failure");
    (gave_up.stop, gave_up.attempts)
}

async fn get(guarded: &Guarded, server: &Server) -> Result<Response, Error> {
    let url = server.url("/");
    guarded.execute(guarded.client().get(url).build().expect("a request")).await
}

async fn post(guarded: &Guarded, server: &Server) -> Result<Response, Error> {
    let request = guarded.client().post(server.url("/")).body("hello");
    guarded.execute(request.build().expect("a request")).await
}

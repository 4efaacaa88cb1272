//! What can go wrong before anything is sent.

use core::future::ready;
use core::net::SocketAddr;
use std::io::{Error, ErrorKind};

use holdoff_reqwest::{Classify, Failure, Guarded, Sent, Stop, Upstream};
use reqwest::Client;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tower::util::AndThenLayer;

use crate::server::{Server, answer};
use crate::{POLICY, millis};

/// A POST through `client`: the reason to stop, the attempts, and the failure.
async fn post(client: Client, url: &str) -> (Stop, u32, Failure) {
    let guarded = Guarded::new(client, Upstream::new(POLICY));
    let request = guarded.client().post(url).body("hello").build().unwrap();
    let error = guarded.execute(request).await.unwrap_err();
    assert!(error.reqwest().unwrap().is_connect(), "{error}");
    (error.stop(), error.attempts(), error.classify())
}

/// The connection stands, and then what is put over it fails, as TLS does.
#[tokio::test]
async fn what_tls_does_not_accept_is_permanent_and_what_breaks_off_is_not() {
    let server = Server::replies(vec![answer(200, &[], "")]).await;
    let transient = Failure::transient().with_sent(Sent::No);
    let permanent = Failure::permanent().with_sent(Sent::No);
    for (kind, expected) in [
        (ErrorKind::InvalidData, (Stop::Permanent, 1, permanent)),
        (ErrorKind::InvalidInput, (Stop::Permanent, 1, permanent)),
        (ErrorKind::Other, (Stop::Permanent, 1, permanent)),
        (ErrorKind::UnexpectedEof, (Stop::Attempts, 3, transient)),
        (ErrorKind::ConnectionReset, (Stop::Attempts, 3, transient)),
        (ErrorKind::TimedOut, (Stop::Attempts, 3, transient)),
        (ErrorKind::AddrNotAvailable, (Stop::Attempts, 3, transient)),
    ] {
        let fails = AndThenLayer::new(move |_| {
            // Wrapped, as connectors for TLS do it.
            let error = Error::other(Error::new(kind, "no TLS"));
            ready(Err::<_, Box<dyn core::error::Error + Send + Sync>>(error.into()))
        });
        let client = Client::builder().no_proxy().connector_layer(fails);
        assert_eq!(post(client.build().unwrap(), &server.url("/")).await, expected, "{kind:?}");
    }
    assert!(server.received().is_empty());
}

struct Nobody;

impl Resolve for Nobody {
    fn resolve(&self, _: Name) -> Resolving {
        Box::pin(ready(Err(Error::other("no such host").into())))
    }
}

/// Resolves to where packets are lost.
struct Nowhere;

impl Resolve for Nowhere {
    fn resolve(&self, _: Name) -> Resolving {
        let address = SocketAddr::from(([192, 0, 2, 1], 80));
        Box::pin(ready(Ok(Box::new([address].into_iter()) as Addrs)))
    }
}

#[tokio::test]
async fn names_and_addresses_in_trouble_are_tried_again() {
    let expected = (Stop::Attempts, 3, Failure::transient().with_sent(Sent::No));
    let client = Client::builder().no_proxy().dns_resolver(Nobody).build().unwrap();
    assert_eq!(post(client, "http://nobody.example/").await, expected);

    let client = Client::builder().no_proxy().dns_resolver(Nowhere);
    let client = client.connect_timeout(millis(50)).build().unwrap();
    assert_eq!(post(client, "http://nowhere.example/").await, expected);
}

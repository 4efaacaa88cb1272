//! What a guard costs where all goes well: nothing, or one clone of the request.

use core::future::{Future, poll_fn};
use core::num::{NonZeroU32, NonZeroUsize};
use core::pin::pin;
use core::task::Poll;
use std::io::{Read, Write};
use std::net::TcpListener;

use allocation_counter::measure;
use holdoff_reqwest::{
    BreakerConfig, BudgetConfig, Guarded, Policy, Quota, Rate, Ratio, RequestOptions, Upstream,
    Upstreams, valid,
};
use reqwest::{Client, Request, Response};

/// A server with a thread of its own, whose allocations do not count.
fn serve() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/path", listener.local_addr().expect("bound"));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            std::thread::spawn(move || {
                let mut buffer = [0; 4096];
                while stream.read(&mut buffer).is_ok_and(|read| read > 0) {
                    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
                    stream.write_all(answer).expect("a client");
                }
            });
        }
    });
    url
}

/// The fewest allocations in which a call succeeded: connections that are set up, and what the
/// runtime has to grow, are others' business.
async fn fewest<F: Future<Output = Response>>(mut call: impl FnMut() -> F) -> u64 {
    let mut fewest = u64::MAX;
    for _ in 0..30 {
        let mut allocations = 0;
        let response = {
            let mut call = pin!(call());
            poll_fn(|context| {
                let mut polled = Poll::Pending;
                allocations += measure(|| polled = call.as_mut().poll(context)).count_total;
                polled
            })
            .await
        };
        assert_eq!(response.text().await.expect("whole"), "ok");
        fewest = fewest.min(allocations);
    }
    fewest
}

#[tokio::test]
async fn success_costs_no_allocation_but_those_of_a_clone() {
    let url = serve();
    let url = reqwest::Url::parse(&url).expect("a URL");
    let client = Client::builder().no_proxy().build().expect("a client");
    let request = || client.get(url.clone()).body("hello").build().expect("a request");

    let plain = fewest(async || client.execute(request()).await.expect("an answer")).await;
    let clone = {
        let request: Request = request();
        measure(|| drop(request.try_clone())).count_total
    };

    let guarded: Guarded = Guarded::new(client.clone(), {
        Upstreams::per_host(NonZeroUsize::new(10).expect("not zero"), |_| {
            Upstream::new(Policy::INTERACTIVE)
                .with_limiter(valid!(Quota::new(Rate::per_second(1_000_000), 1_000)))
                .with_breaker(valid!(BreakerConfig::rate(20, Ratio::percent(50)).build()))
                .with_budget(valid!(BudgetConfig::new(10, Ratio::percent(10)).build()))
        })
    });
    let sent = fewest(async || {
        guarded.send(|client| client.get(url.clone()).body("hello")).await.expect("an answer")
    });
    assert_eq!(sent.await, plain, "made anew for each attempt");

    let executed = fewest(async || guarded.execute(request()).await.expect("an answer"));
    assert_eq!(executed.await, plain + clone, "cloned for each attempt but the last");

    let once = RequestOptions::new().with_max_attempts(NonZeroU32::MIN);
    let last = fewest(async || guarded.execute_with(request(), &once).await.expect("an answer"));
    assert_eq!(last.await, plain, "the last attempt");
    assert!(clone <= 4, "{clone}");
}

//! Many requests with all kinds of ends, and the bytes that are still there after them.

use core::cell::Cell;
use core::future::{pending, ready};
use core::net::SocketAddr;
use core::num::NonZeroUsize;
use core::ops::Range;
use core::time::Duration;
use std::sync::{Mutex, mpsc};

use allocation_counter::measure;
use futures_util::future::join_all;
use holdoff_reqwest::{
    BreakerConfig, BudgetConfig, Guard, Guarded, Ratio, RequestOptions, Upstream, Upstreams, valid,
};
use reqwest::Client;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::runtime;
use tokio::time::timeout;

use crate::chaos::fault;
use crate::server::Server;
use crate::{QUICK, millis};

const HOSTS: NonZeroUsize = NonZeroUsize::new(16).unwrap();
const REQUESTS: usize = 100;
/// Until whatever grows up to a bound has grown.
const WARM_UP: usize = 2;
const ROUNDS: usize = 17;

/// A server with a thread of its own, whose allocations do not count.
fn serve() -> SocketAddr {
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let runtime = runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let random = Mutex::new(fastrand::Rng::with_seed(11));
            let server = Server::start(move |_| fault(random.lock().unwrap().u32(..))).await;
            tell.send(server.address).unwrap();
            pending::<()>().await;
        });
    });
    told.recv().unwrap()
}

/// Every name is that of the server, and no thread is needed to find out.
struct Everywhere(SocketAddr);

impl Resolve for Everywhere {
    fn resolve(&self, _: Name) -> Resolving {
        Box::pin(ready(Ok(Box::new([self.0].into_iter()) as Addrs)))
    }
}

/// A host, and sometimes a key. Few come back; the others are chosen to fill memory.
fn target(round: usize, number: usize) -> (String, Option<String>) {
    match number % 8 {
        0 | 1 => ("known.example".to_owned(), None),
        2 => (format!("known-{}.example", number % 5), None),
        3 => (format!("new-{round}-{number}.example"), None),
        4 => (format!("{}-{round}-{number}.example", "long".repeat(60)), None),
        5 => (format!("{}.{round}.{number}.example", "x".repeat(1_000)), None),
        6 => (format!("ünd-{round}-{number}.example"), None),
        _ => {
            let key = format!("{}{round}-{number}", "key".repeat(number * 10));
            ("known.example".to_owned(), Some(key))
        }
    }
}

/// Whether there was an answer.
async fn ask(guarded: &Guarded, round: usize, number: usize) -> bool {
    let (host, key) = target(round, number);
    let mut options = RequestOptions::new();
    if let Some(key) = key {
        options = options.with_key(key);
    }
    if number.is_multiple_of(3) {
        options = options.with_whole_body(1_000);
    }
    let request = guarded.client().post(format!("http://{host}/")).body("hello");
    let request = request.build().expect("a request");
    // Some are not waited for, some answers are not read.
    let patience = if number.is_multiple_of(7) { millis(2) } else { Duration::MAX };
    let answer = timeout(patience, guarded.execute_with(request, &options)).await;
    let Ok(Ok(response)) = answer else { return false };
    if number.is_multiple_of(2) {
        let _ = response.bytes().await;
    }
    true
}

#[test]
fn memory_is_flat() {
    let address = serve();
    let upstreams = Upstreams::per_host(HOSTS, |key| {
        let policy = QUICK.with_attempt_timeout(millis(100)).with_deadline(millis(400));
        let upstream = Upstream::new(policy.build().unwrap())
            .with_budget(valid!(BudgetConfig::new(1_000, Ratio::percent(50)).build()));
        // A few are soon left alone; the others are to be asked to the end.
        match key {
            "known-0.example" => {
                upstream.with_breaker(valid!(BreakerConfig::consecutive(1).build()))
            }
            _ => upstream,
        }
    });
    let guard = Guard::llm(upstreams.with_idle_after(Duration::ZERO));
    // Connections that nobody will use again are reqwest's business.
    let client = Client::builder()
        .no_proxy()
        .pool_max_idle_per_host(0)
        .dns_resolver(Everywhere(address))
        .build()
        .unwrap();
    let guarded = Guarded::new(client, guard);

    let answered = Cell::new(0);
    // With a runtime of its own: when that is gone, so is all that was in flight.
    let round = |number| {
        let runtime = runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let requests = (0..REQUESTS).map(|request| ask(&guarded, number, request));
        let answers = runtime.block_on(join_all(requests));
        answered.set(answered.get() + answers.iter().filter(|&&is_there| is_there).count());
    };
    let used = |rounds: Range<usize>| measure(|| rounds.for_each(round));
    used(0..WARM_UP);
    let rest = used(WARM_UP..ROUNDS);
    assert!(answered.get() > 0, "the server serves");
    assert!(rest.bytes_total > 1_000_000, "allocations are counted: {rest:?}");
    // Longer names may have taken the place of shorter ones. All others would have to share less
    // than 3 bytes each.
    let bytes = HOSTS.get() * 256;
    assert!(bytes < 3 * REQUESTS * (ROUNDS - WARM_UP));
    assert!(rest.bytes_current <= i64::try_from(bytes).unwrap(), "{rest:?}");
    assert!(rest.count_current <= 16, "{rest:?}");
    assert_eq!(guarded.guard().upstreams().len(), HOSTS.get());
}

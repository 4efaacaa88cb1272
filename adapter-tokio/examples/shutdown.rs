//! A service that is told to stop: what waits ends at once and says what is known, what is in
//! flight may finish for a while, and what was never started is given back.
//!
//! The provider is simulated and tokio's time is paused: it ends at once. In a service the token is
//! cancelled by `tokio::signal::ctrl_c()` or `SIGTERM`.
//!
//! ```sh
//! cargo run -p holdoff-tokio --example shutdown --features batch
//! ```

use core::num::NonZeroUsize;
use core::time::Duration;

use futures_util::StreamExt;
use holdoff_tokio::batch::{Batch, JobResult};
use holdoff_tokio::{Classify, Failure, Hint, Policy, Upstream};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

static PROVIDER: Upstream = Upstream::new(Policy::BATCH);

/// How long those in flight may take to finish.
const GRACE: Duration = Duration::from_secs(10);

/// What the provider answers when it wants to be left alone for a minute.
#[derive(Debug)]
struct Busy;

impl Classify for Busy {
    fn classify(&self) -> Failure {
        Failure::throttled().with_hint(Hint::after(Duration::from_secs(60)))
    }
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() {
    let start = Instant::now();
    // First no new work; later, if that is not enough, an end to everything.
    let (stop, abort) = (CancellationToken::new(), CancellationToken::new());
    let shutdown = async {
        sleep(Duration::from_secs(5)).await;
        println!("[{:?}] told to stop", start.elapsed());
        stop.cancel();
        sleep(GRACE).await;
        println!("[{:?}] the time is up", start.elapsed());
        abort.cancel();
    };
    tokio::join!(poll_for_news(start, &stop), work_off(start, &stop, &abort), shutdown);
}

/// Work that nobody misses: a backoff of a minute is not waited for.
async fn poll_for_news(start: Instant, stop: &CancellationToken) {
    let gave_up = PROVIDER
        .prepare()
        .cancel_when(stop.cancelled())
        .run(async |_| Err::<(), _>(Busy))
        .await
        .expect_err("the provider is always busy");
    println!("[{:?}] news: {gave_up}; last answer: {:?}", start.elapsed(), gave_up.last);
}

/// Work that must not be lost. A job is the number of seconds that it takes.
async fn work_off(start: Instant, stop: &CancellationToken, abort: &CancellationToken) {
    let mut results = Batch::new([2, 8, 40, 4, 7, 1], NonZeroUsize::new(3).unwrap())
        .stop_when(stop.cancelled())
        .run(
            |_| PROVIDER.prepare().cancel_when(abort.cancelled()),
            async |&job, _| {
                sleep(Duration::from_secs(job)).await;
                Ok::<_, Failure>(())
            },
        );
    while let Some(result) = results.next().await {
        let at = start.elapsed();
        match result {
            JobResult::Done { job, .. } => println!("[{at:?}] job {job}: done"),
            JobResult::Dead(letter) => println!("[{at:?}] job {}: {letter}", letter.job),
            JobResult::Undelivered { error, .. } => match error {},
        }
    }
    let unstarted: Vec<_> = results.into_unstarted().collect().await;
    println!("[{:?}] never started, for the next run: {unstarted:?}", start.elapsed());
}

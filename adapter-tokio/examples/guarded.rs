//! A guarded upstream: configured by a file and the environment, called while the service is well,
//! while it is down and after it has come back.
//!
//! ```sh
//! SEARCH_BREAKER_OPEN_PERIOD=5s cargo run -p holdoff-tokio --features config --example guarded
//! ```
//!
//! Time is tokio's, paused: two minutes pass at once.

use core::error::Error;
use core::time::Duration;
use std::process::ExitCode;
use std::sync::Arc;

use holdoff_tokio::config::{BUCKETS, UpstreamConfig};
use holdoff_tokio::{Classify, Failure, Upstream};
use tokio::time::{Instant, sleep};

const FILE: &str = r#"
    [search]
    retry = { preset = "interactive", base_delay = "250ms", attempt_timeout = "2s" }
    limiter = { rate = "20/s", burst = 40, max_waiting = 100 }
    breaker = { share = "50%", over = "10s", open_period = "3s", open_jitter = "20%" }
    budget = { ratio = "10%" }
"#;

#[derive(serde::Deserialize)]
struct Settings {
    search: UpstreamConfig,
}

#[derive(Debug)]
struct Unavailable;

impl Classify for Unavailable {
    fn classify(&self) -> Failure {
        Failure::transient()
    }
}

/// Answers within 50 ms; fails once in ten times, and always from second 30 to 60.
struct Service {
    start: Instant,
}

impl Service {
    async fn search(&self, number: u32) -> Result<u32, Unavailable> {
        sleep(Duration::from_millis(50)).await;
        let is_down = (30..60).contains(&self.start.elapsed().as_secs());
        let is_tenth = (number + self.start.elapsed().subsec_millis()).is_multiple_of(10);
        if is_down || is_tenth { Err(Unavailable) } else { Ok(number) }
    }
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Box<dyn Error>> {
    let settings: Settings = toml::from_str(FILE)?;
    let config = settings.search.overridden_by_env("SEARCH")?;
    println!("{}", toml::to_string(&config.effective()?)?);

    let upstream: Arc<Upstream<BUCKETS>> = Arc::new(config.build()?);
    let service = Arc::new(Service { start: Instant::now() });
    // Ten callers a second.
    for number in 0..1_200 {
        let (upstream, service) = (upstream.clone(), service.clone());
        tokio::spawn(async move { upstream.call(|| service.search(number)).await });
        sleep(Duration::from_millis(100)).await;
    }
    sleep(Duration::from_secs(20)).await; // As long as a call may take.

    println!("{:#?}", upstream.counters().map(holdoff_tokio::Counters::snapshot));
    Ok(())
}

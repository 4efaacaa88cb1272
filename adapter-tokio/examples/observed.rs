//! Two minutes of an incident, in no time: what the log and the metrics page show of it.
//!
//! ```sh
//! cargo run -p holdoff-tokio --example observed --features metrics,tracing
//! ```

use core::error::Error;
use core::time::Duration;

use holdoff_tokio::{
    BreakerConfig, BudgetConfig, Failure, Policy, Quota, Rate, Ratio, Upstream, observe, valid,
};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder};
use tokio::time::{Instant, sleep};

static PROVIDER: Upstream = Upstream::new(Policy::INTERACTIVE)
    .named("provider")
    .with_limiter(valid!(Quota::new(Rate::per_second(5), 2)))
    .with_breaker(valid!(BreakerConfig::consecutive(5).build()))
    .with_budget(valid!(BudgetConfig::new(5, Ratio::percent(10)).build()));

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<(), Box<dyn Error>> {
    // Once in a program: who writes the traces, who keeps the metrics, and what they mean.
    tracing_subscriber::fmt().without_time().with_ansi(false).init();
    let attempts = Matcher::Full("holdoff.attempts_per_call".into());
    let recorder = PrometheusBuilder::new()
        .with_recommended_naming(true)
        .set_buckets_for_metric(attempts, &observe::ATTEMPTS_BUCKETS)?
        .build_recorder();
    let page = recorder.handle();
    metrics::set_global_recorder(recorder)?;
    observe::describe_metrics();

    // The same jitter each time.
    fastrand::seed(7);
    let start = Instant::now();
    while start.elapsed().as_secs() < 120 {
        let second = || start.elapsed().as_secs();
        match PROVIDER.call(|| ask(second())).await {
            Ok(answer) => println!("{:>3} s  {answer}", second()),
            Err(gave_up) => println!("{:>3} s  {gave_up}", second()),
        }
        sleep(Duration::from_secs(10)).await;
    }

    println!("\n{}", page.render());
    Ok(())
}

/// A provider that is down from the 20th to the 70th second.
async fn ask(second: u64) -> Result<&'static str, Failure> {
    match second {
        20..70 => Err(Failure::transient()),
        _ => Ok("hello"),
    }
}

//! A question to a big model, or else to a smaller one, answered within 20 seconds.
//!
//! ```sh
//! cargo run -p holdoff-tokio --example failover
//! ```
//!
//! The models are simulated and time is tokio's paused clock, so it ends at once.

use core::error::Error;
use core::fmt;
use core::time::Duration;

use holdoff_tokio::{
    BreakerConfig, Classify, Failover, Failure, Hint, Policy, Stop, Upstream, failover, valid,
};
use tokio::time::sleep;

/// Has 12 of the 20 seconds; after three failures in a row it is left alone for a while.
static BIG: Upstream = Upstream::new(Policy::LLM.with_deadline(Duration::from_secs(12)))
    .with_breaker(valid!(BreakerConfig::consecutive(3).build()));
static SMALL: Upstream = Upstream::new(Policy::LLM);
static MODELS: Failover<2> = Failover::new();
const NAMES: [&str; 2] = ["the big model", "the small model"];

#[derive(Debug)]
enum ModelError {
    BadPrompt,
    Overloaded { retry_after: Duration },
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadPrompt => f.write_str("the prompt is empty"),
            Self::Overloaded { retry_after } => write!(f, "overloaded for {retry_after:?}"),
        }
    }
}

impl Error for ModelError {}

impl Classify for ModelError {
    fn classify(&self) -> Failure {
        match self {
            Self::BadPrompt => Failure::permanent(),
            Self::Overloaded { retry_after } => {
                Failure::throttled().with_hint(Hint::after(*retry_after))
            }
        }
    }
}

/// Takes for ever on riddles, has no room for essays, and answers the rest.
async fn ask_big(prompt: &str) -> Result<String, ModelError> {
    sleep(Duration::from_millis(800)).await;
    match prompt {
        "" => Err(ModelError::BadPrompt),
        "a riddle" => core::future::pending().await,
        "an essay" => Err(ModelError::Overloaded { retry_after: Duration::from_secs(30) }),
        _ => Ok(format!("a long answer to {prompt}")),
    }
}

async fn ask_small(prompt: &str) -> Result<String, ModelError> {
    sleep(Duration::from_millis(200)).await;
    Ok(format!("a short answer to {prompt}"))
}

async fn answer(prompt: &str) {
    let answered = failover(&MODELS, [&BIG, &SMALL])
        .with_deadline(Duration::from_secs(20))
        .run(|candidate, _| async move {
            match candidate {
                0 => ask_big(prompt).await,
                _ => ask_small(prompt).await,
            }
        })
        .await;
    match answered {
        Ok(served) => {
            println!("{}: {}", NAMES[served.by], served.value);
            for (candidate, gave_up) in &served.failed {
                println!("    before that, {}: {gave_up}", NAMES[*candidate]);
            }
            if served.failed.is_empty() && served.by > 0 {
                println!("    the others are cooling down");
            }
        }
        // The caller's own mistake: no other model would know better.
        Err(none) if none.stop() == Some(Stop::Permanent) => println!("not asked well: {none}"),
        Err(none) => println!("nobody: {none}"),
    }
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() {
    answer("a question").await;
    answer("a riddle").await;
    answer("an essay").await;
    answer("a question").await; // The big model has asked to be left alone.
    sleep(Duration::from_secs(30)).await;
    answer("a question").await;
    answer("").await;
}

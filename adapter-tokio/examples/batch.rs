//! A hundred jobs, sixteen at once, through one guarded upstream; those given up go into a file and
//! are run again from there.
//!
//! The provider is simulated and tokio's time is paused: it ends at once, and says how long it
//! would have taken.
//!
//! ```sh
//! cargo run -p holdoff-tokio --example batch --features dead-letters
//! ```

use core::cell::Cell;
use core::error::Error;
use core::fmt;
use core::num::NonZeroUsize;
use core::time::Duration;
use std::path::Path;

use holdoff_tokio::batch::{Batch, JobResult, ProgressSnapshot};
use holdoff_tokio::dead_letter::{DeadLetterFile, read};
use holdoff_tokio::{Classify, Failure, Hint, Policy, Quota, Rate, Upstream, valid};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};

const AT_ONCE: NonZeroUsize = NonZeroUsize::new(16).unwrap();

/// The client keeps to 20 requests at once and 10 a second.
static MODEL: Upstream =
    Upstream::new(Policy::BATCH).with_limiter(valid!(Quota::new(Rate::per_second(10), 20)));

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Prompt {
    id: u32,
    text: String,
}

#[derive(Debug)]
enum ModelError {
    Refused { token: usize },
    TooManyRequests { retry_after: Duration },
}

impl Classify for ModelError {
    fn classify(&self) -> Failure {
        match self {
            Self::Refused { .. } => Failure::permanent(),
            Self::TooManyRequests { retry_after } => {
                Failure::throttled().with_hint(Hint::after(*retry_after))
            }
        }
    }
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { token } => write!(f, "400: invalid token at {token}"),
            Self::TooManyRequests { .. } => f.write_str("429: too many requests"),
        }
    }
}

impl Error for ModelError {}

/// A provider that every ninth request is too many for, and that some prompts are poison to.
#[derive(Default)]
struct Provider {
    requests: Cell<u32>,
}

impl Provider {
    async fn complete(&self, prompt: &Prompt) -> Result<String, ModelError> {
        self.requests.set(self.requests.get() + 1);
        let is_too_many = self.requests.get().is_multiple_of(9);
        sleep(Duration::from_millis(300)).await;
        if is_too_many {
            return Err(ModelError::TooManyRequests { retry_after: Duration::from_secs(1) });
        }
        match prompt.text.find('\u{fffd}') {
            Some(token) => Err(ModelError::Refused { token }),
            None => Ok(prompt.text.to_uppercase()),
        }
    }
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let (dead, again) = (directory.path().join("dead.jsonl"), directory.path().join("again.jsonl"));

    let prompts = (1..=100).map(|id| {
        let poison = if id % 30 == 7 { "\u{fffd}" } else { "" };
        Prompt { id, text: format!("prompt {id}{poison}") }
    });
    println!("a hundred jobs:");
    run(prompts, &dead).await?;

    // What a person would do: look at what is dead, mend it, run it again.
    let (records, bad_lines) = read::<Prompt>(&dead).await?;
    for line in bad_lines {
        eprintln!("{}: {line}", dead.display());
    }
    for record in &records {
        let error = record.error.as_ref().map_or("none", |error| &error.message);
        println!("  dead: job {}, {}, last error: {error}", record.job.id, record.stop.reason);
    }
    let mended = records.into_iter().map(|record| {
        let text = record.job.text.replace('\u{fffd}', "");
        Prompt { text, ..record.job }
    });
    println!("the dead ones, mended:");
    let progress = run(mended, &again).await?;
    assert_eq!(progress.dead, 0);
    Ok(())
}

/// Runs `prompts`, says how it went, and writes those given up to a file at `dead`.
async fn run(
    prompts: impl Iterator<Item = Prompt>,
    dead: &Path,
) -> Result<ProgressSnapshot, Box<dyn Error>> {
    let (provider, start) = (Provider::default(), Instant::now());
    let file = DeadLetterFile::open(dead).await?;
    let mut results = Batch::new(prompts, AT_ONCE)
        .with_dead_letters(file)
        .run(|_| MODEL.prepare(), async |prompt, _| provider.complete(prompt).await);
    let progress = results.progress();
    let mut bytes = 0; // What is made of the answers.
    while let Some(result) = results.next().await {
        match result {
            JobResult::Done { value, .. } => bytes += value.len(),
            JobResult::Dead(_) => {} // In the file.
            // Nowhere else any more.
            JobResult::Undelivered { letter, error } => {
                eprintln!("{error}: {:?}: {letter}", letter.job);
            }
        }
    }
    let progress = progress.snapshot();
    let ProgressSnapshot { started, done, dead, retries, .. } = progress;
    println!(
        "  {started} jobs in {:.1} s: {done} done ({bytes} bytes), {dead} dead, {retries} retries",
        start.elapsed().as_secs_f64(),
    );
    Ok(progress)
}

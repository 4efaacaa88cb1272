//! What goes wrong, and when: the scenario file.

use core::fmt;
use core::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use core::time::Duration;
use std::io;
use std::path::Path;

use holdoff::ConfigError;
use serde::Deserialize;

use super::{limit, text};
use crate::rate::Rate;

/// What goes wrong, and when, read from TOML or JSON.
///
/// ```
/// use core::time::Duration;
/// use holdoff_herd::serve::scenario::{Effect, Scenario};
///
/// let scenario = Scenario::from_toml(
///     r#"
///     [[step]]
///     when = { from = "2s", until = "1m", path = "/v1/*", probability = 0.25 }
///     then = { kind = "status", status = 529 }
///     "#,
/// )?;
/// assert_eq!(scenario.steps[0].then, Effect::Status { status: 529 });
/// assert_eq!(scenario.steps[0].when.until, Some(Duration::from_secs(60)));
/// # Ok::<(), holdoff_herd::serve::scenario::ScenarioError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Seed of everything random; 0 by default.
    #[serde(default)]
    pub seed: u64,
    /// `step` in the file. Effects of different kinds add up. Of several of one kind that apply to
    /// a request, of `Status` and `Quota`, and of `Cut` and `Overloaded`, the first one counts.
    #[serde(default, rename = "step")]
    pub steps: Vec<Step>,
}

/// One thing that goes wrong, and when.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Which requests it is for; every one by default.
    #[serde(default)]
    pub when: When,
    /// What happens to them.
    pub then: Effect,
}

/// Which requests a step is for: those for which all of this is so.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct When {
    /// The time from which it applies, since the first request; 0 by default.
    #[serde(with = "text::duration")]
    pub from: Duration,
    /// The time from which it applies no longer. After `from`.
    #[serde(with = "text::duration::optional")]
    pub until: Option<Duration>,
    /// The number of the first request it is for, of those `path` fits; 1 by default.
    pub first: NonZeroU64,
    /// The number of the last one. Not below `first`.
    pub last: Option<NonZeroU64>,
    /// The path it is for, or what the path begins with and `*`.
    pub path: Option<String>,
    /// The share of requests, drawn by chance: 0 to 1, 1 by default.
    pub probability: f64,
}

impl Default for When {
    fn default() -> Self {
        Self {
            from: Duration::ZERO,
            until: None,
            first: NonZeroU64::MIN,
            last: None,
            path: None,
            probability: 1.0,
        }
    }
}

/// What happens to a request: `then` in the file, its `kind` being the name in lower case with
/// hyphens.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[serde(deny_unknown_fields)]
pub enum Effect {
    /// Answered with a failure of the service, without a look at the limit.
    Status {
        /// 400 to 599; 529 is an overload.
        status: u16,
    },
    /// 429 for what no wait of seconds helps against, and without a hint: the spending limit of
    /// the one provider, `insufficient_quota` of the other.
    Quota {},
    /// How a failure says when to come back.
    Hint {
        /// In which header.
        #[serde(default)]
        form: HintForm,
        /// The wait that is told, instead of what the limit says; also with failures that have
        /// nothing to do with the limit.
        #[serde(default, with = "text::duration::optional")]
        retry_after: Option<Duration>,
        /// The header `x-should-retry`, sent with every answer.
        #[serde(default)]
        should_retry: Option<bool>,
    },
    /// The answer comes late or in small pieces.
    Slow {
        /// How late, on top of the latency.
        #[serde(default, with = "text::duration")]
        delay: Duration,
        /// In which pieces.
        #[serde(default)]
        trickle: Option<Trickle>,
    },
    /// The connection is reset instead of an answer, or in the middle of it.
    Reset {
        /// So many bytes into the body, but before the last one of a known length; without it, or
        /// without a body, before the status line.
        #[serde(default)]
        after_bytes: Option<usize>,
    },
    /// A stream of events ends in the middle, its connection closed.
    Cut {
        /// After so many events.
        after_events: usize,
    },
    /// A stream of events ends with an error event: `overloaded_error`, or OpenAI's `server_error`.
    Overloaded {
        /// After so many events.
        after_events: usize,
    },
    /// The limit is another one for everybody. Takes only `from` and `until` of [`When`]; of two
    /// at a time the later step counts.
    Limit {
        /// Requests a second, as `--rate`.
        #[serde(deserialize_with = "text::rate")]
        rate: Rate,
        /// Requests at once, as `--burst`.
        burst: NonZeroU32,
    },
}

/// The header that says when to come back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HintForm {
    /// `retry-after` as an HTTP-date, rounded up to a second.
    HttpDate,
    /// `retry-after-ms`, rounded up to a millisecond.
    Milliseconds,
    /// No header.
    Omitted,
    /// `retry-after` in whole seconds, rounded up, at least 1.
    #[default]
    Seconds,
}

/// A body in pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trickle {
    /// Bytes of a piece. Must not be zero.
    pub bytes: NonZeroUsize,
    /// The time from one to the next.
    #[serde(with = "text::duration")]
    pub every: Duration,
}

impl Scenario {
    /// The scenario in a file: JSON if its name ends in `.json`, else TOML.
    ///
    /// # Errors
    /// [`ScenarioError`] if it cannot be read, understood or played.
    pub fn read(path: &Path) -> Result<Self, ScenarioError> {
        let text = std::fs::read_to_string(path).map_err(ScenarioError::Read)?;
        match path.extension() {
            Some(extension) if extension == "json" => Self::from_json(&text),
            _ => Self::from_toml(&text),
        }
    }

    /// The scenario in a text of TOML.
    ///
    /// # Errors
    /// [`ScenarioError`] if it cannot be understood or played.
    pub fn from_toml(text: &str) -> Result<Self, ScenarioError> {
        let scenario: Self = toml::from_str(text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            let line = 1 + text.bytes().take(start).filter(|&byte| byte == b'\n').count();
            let message = error.message().replace('\n', ", ");
            ScenarioError::Syntax(format!("line {line}: {message}"))
        })?;
        scenario.check()?;
        Ok(scenario)
    }

    /// The scenario in a text of JSON.
    ///
    /// # Errors
    /// [`ScenarioError`] if it cannot be understood or played.
    pub fn from_json(text: &str) -> Result<Self, ScenarioError> {
        let scenario: Self =
            serde_json::from_str(text).map_err(|error| ScenarioError::Syntax(error.to_string()))?;
        scenario.check()?;
        Ok(scenario)
    }

    /// Whether each step can be played.
    ///
    /// # Errors
    /// [`ScenarioError::Step`] for the first that cannot.
    pub fn check(&self) -> Result<(), ScenarioError> {
        for (number, step) in (1..).zip(&self.steps) {
            step.check().map_err(|wrong| ScenarioError::Step { number, wrong })?;
        }
        Ok(())
    }
}

impl Step {
    fn check(&self) -> Result<(), Wrong> {
        let When { from, until, first, last, path, probability } = &self.when;
        if until.is_some_and(|until| until <= *from) {
            return Err(Wrong::Window);
        }
        if last.is_some_and(|last| last < *first) {
            return Err(Wrong::Numbers);
        }
        if path.as_ref().is_some_and(|path| !path.starts_with('/')) {
            return Err(Wrong::Path);
        }
        if !(0.0..=1.0).contains(probability) {
            return Err(Wrong::Probability);
        }
        match self.then {
            Effect::Status { status } if !(400..600).contains(&status) => Err(Wrong::Status),
            Effect::Limit { rate, burst } => {
                let timed = When { from: *from, until: *until, ..When::default() };
                if self.when != timed {
                    return Err(Wrong::LimitForSome);
                }
                limit(rate, burst).map(|_| ()).map_err(Wrong::Quota)
            }
            _ => Ok(()),
        }
    }
}

/// Why there is no scenario. Each is one line.
#[derive(Debug)]
#[non_exhaustive]
pub enum ScenarioError {
    /// The file cannot be read.
    Read(io::Error),
    /// A step cannot be played.
    Step {
        /// Which one, from 1.
        number: usize,
        /// What is wrong with it.
        wrong: Wrong,
    },
    /// It is not a scenario; says where and what is expected there.
    Syntax(String),
}

/// What is wrong with a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wrong {
    /// A limit for some requests only.
    LimitForSome,
    /// `last` is below `first`.
    Numbers,
    /// The path has no slash at its beginning.
    Path,
    /// The probability is not from 0 to 1.
    Probability,
    /// No limiter has this rate and burst.
    Quota(ConfigError),
    /// The status is no failure.
    Status,
    /// `until` is not after `from`.
    Window,
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => write!(f, "cannot be read: {error}"),
            Self::Step { number, wrong } => write!(f, "step {number}: {wrong}"),
            Self::Syntax(text) => f.write_str(text),
        }
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::LimitForSome => "kind \"limit\" takes only `from` and `until`",
            Self::Numbers => "`last` must not be below `first`",
            Self::Path => "`path` must begin with a slash",
            Self::Probability => "`probability` must be from 0 to 1",
            Self::Quota(error) => return write!(f, "`burst` is too high for `rate`: {error}"),
            Self::Status => "`status` must be from 400 to 599",
            Self::Window => "`until` must be after `from`",
        })
    }
}

impl core::error::Error for ScenarioError {}
impl core::error::Error for Wrong {}

//! Settings that are one value.

use core::time::Duration;

use holdoff::{HintSpread, Jitter, Policy, Rate, Ratio};

use super::raw::Raw;
use super::text;

/// A setting that is one value, written as text or as a number.
pub(super) trait Value: Sized {
    /// Reads what is left of blanks; the error is what to complain of, or nothing in particular.
    fn parse(text: &str) -> Result<Self, &'static str>;

    fn from_table(_: &[(String, Raw)]) -> Result<Self, &'static str> {
        Err("")
    }

    /// What reads back as it.
    fn print(&self) -> Raw;
}

/// A value, or that there is none, written `"none"`: to take away what a preset has.
///
/// ```
/// use holdoff_tokio::config::{OrNone, RetrySection};
///
/// let retry: RetrySection = toml::from_str("preset = 'interactive'\ndeadline = 'none'")?;
/// assert_eq!(retry.deadline, Some(OrNone::None));
/// assert_eq!(retry.build().unwrap().deadline(), None);
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OrNone<T> {
    /// This.
    Is(T),
    /// There is none.
    None,
}

impl<T> OrNone<T> {
    pub(super) fn into_option(self) -> Option<T> {
        match self {
            Self::Is(value) => Some(value),
            Self::None => None,
        }
    }
}

impl<T> From<Option<T>> for OrNone<T> {
    fn from(option: Option<T>) -> Self {
        option.map_or(Self::None, Self::Is)
    }
}

/// A policy to start from.
///
/// ```
/// use holdoff_tokio::Policy;
/// use holdoff_tokio::config::{Preset, RetrySection};
///
/// let mut retry = RetrySection::default();
/// retry.preset = Some(Preset::Llm);
/// assert_eq!(retry.build().unwrap(), Policy::LLM);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Preset {
    /// [`Policy::BATCH`], written `"batch"`.
    Batch,
    /// [`Policy::INTERACTIVE`], written `"interactive"`.
    Interactive,
    /// [`Policy::LLM`], written `"llm"`.
    Llm,
    /// [`Policy::STANDARD`], written `"standard"`: the default.
    #[default]
    Standard,
}

impl Preset {
    pub(super) const fn policy(self) -> Policy {
        match self {
            Self::Batch => Policy::BATCH,
            Self::Interactive => Policy::INTERACTIVE,
            Self::Llm => Policy::LLM,
            Self::Standard => Policy::STANDARD,
        }
    }
}

/// What a throttled response (429) without a usable delay means.
///
/// ```
/// use holdoff_tokio::UnhintedThrottle;
/// use holdoff_tokio::config::{RetrySection, Throttle};
///
/// let mut retry = RetrySection::default();
/// retry.unhinted_throttle = Some(Throttle::Stop);
/// assert_eq!(*retry.build().unwrap().unhinted_throttle(), UnhintedThrottle::Stop);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Throttle {
    /// The schedule in `throttled`, written `"backoff"`.
    Backoff,
    /// The schedule of any other failure, written `"same_backoff"`.
    SameBackoff,
    /// The end, for it may be a spending limit; written `"stop"`.
    Stop,
}

impl<T: Value> Value for OrNone<T> {
    fn parse(text: &str) -> Result<Self, &'static str> {
        if text == "none" { Ok(Self::None) } else { T::parse(text).map(Self::Is) }
    }

    fn print(&self) -> Raw {
        match self {
            Self::Is(value) => value.print(),
            Self::None => Raw::Text("none".into()),
        }
    }
}

impl Value for u32 {
    fn parse(text: &str) -> Result<Self, &'static str> {
        if text.starts_with('+') { Err("") } else { text.parse().map_err(|_| "") }
    }

    fn print(&self) -> Raw {
        Raw::Number(self.to_string())
    }
}

impl Value for Duration {
    fn parse(text: &str) -> Result<Self, &'static str> {
        text::parse_duration(text)
    }

    fn print(&self) -> Raw {
        Raw::Text(text::print_duration(*self))
    }
}

impl Value for Ratio {
    fn parse(text: &str) -> Result<Self, &'static str> {
        text::parse_ratio(text)
    }

    fn print(&self) -> Raw {
        Raw::Number(text::print_ratio(*self))
    }
}

impl Value for Rate {
    fn parse(text: &str) -> Result<Self, &'static str> {
        text::parse_rate(text)
    }

    fn print(&self) -> Raw {
        Raw::Text(text::print_rate(*self))
    }
}

/// Jitter of a named kind.
fn jitter_of(kind: &str, ratio: Ratio) -> Result<Jitter, &'static str> {
    match kind {
        "additive" => Ok(Jitter::Additive(ratio)),
        "proportional" => Ok(Jitter::Proportional(ratio)),
        "shortening" => Ok(Jitter::Shortening(ratio)),
        _ => Err(""),
    }
}

impl Value for Jitter {
    fn parse(text: &str) -> Result<Self, &'static str> {
        match (text, text.split_once(' ')) {
            ("decorrelated", _) => Ok(Self::Decorrelated),
            ("equal", _) => Ok(Self::Equal),
            ("full", _) => Ok(Self::Full),
            ("none", _) => Ok(Self::None),
            ("additive" | "proportional" | "shortening", _) => Err("its share is missing"),
            (_, Some((kind, share))) if kind.starts_with(|first: char| first.is_alphabetic()) => {
                jitter_of(kind, text::parse_ratio(share.trim())?)
            }
            _ => text::parse_ratio(text).map(Self::Additive),
        }
    }

    fn from_table(entries: &[(String, Raw)]) -> Result<Self, &'static str> {
        match entries {
            [(kind, Raw::Number(share) | Raw::Text(share))] => {
                jitter_of(kind, text::parse_ratio(share.trim())?)
            }
            _ => Err(""),
        }
    }

    fn print(&self) -> Raw {
        let with = |kind, ratio| format!("{kind} {}", text::print_ratio(ratio));
        Raw::Text(match *self {
            Self::Additive(ratio) => with("additive", ratio),
            Self::Decorrelated => "decorrelated".into(),
            Self::Equal => "equal".into(),
            Self::Full => "full".into(),
            Self::None => "none".into(),
            Self::Proportional(ratio) => with("proportional", ratio),
            Self::Shortening(ratio) => with("shortening", ratio),
            unnamed => format!("{unnamed:?}"),
        })
    }
}

macro_rules! named {
    ($Kind:ty { $($name:literal => $variant:ident,)* }) => {
        impl Value for $Kind {
            fn parse(text: &str) -> Result<Self, &'static str> {
                match text {
                    $($name => Ok(Self::$variant),)*
                    _ => Err(""),
                }
            }

            fn print(&self) -> Raw {
                #[allow(unreachable_patterns, reason = "the core may come to know more")]
                Raw::Text(match self {
                    $(Self::$variant => $name.to_owned(),)*
                    unnamed => format!("{unnamed:?}"),
                })
            }
        }
    };
}

named!(Preset {
    "batch" => Batch,
    "interactive" => Interactive,
    "llm" => Llm,
    "standard" => Standard,
});

named!(Throttle {
    "backoff" => Backoff,
    "same_backoff" => SameBackoff,
    "stop" => Stop,
});

named!(HintSpread {
    "envelope" => Envelope,
    "envelope_or_granularity" => EnvelopeOrGranularity,
    "none" => None,
});

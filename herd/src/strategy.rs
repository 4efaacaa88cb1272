//! The strategies: what a client does when it is told 429.

use core::error::Error;
use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use holdoff::{Backoff, BackoffConfig, HintSpread, Jitter, Policy, PolicyConfig, Ratio, valid};

use crate::sdk;

/// How clients retry.
///
/// ```
/// use holdoff_herd::strategy::Strategy;
///
/// let strategy: Strategy = "full-jitter".parse()?;
/// assert_eq!(strategy, Strategy::FullJitter);
/// assert_eq!(strategy.max_attempts(), 8);
/// # Ok::<(), holdoff_herd::strategy::UnknownStrategy>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// One attempt.
    None,
    /// Three attempts, 0.5 s doubling, give or take 10 %: a common library default.
    LlmRetry3,
    /// The rule of Anthropic's Python SDK: two retries, and hints up to a minute obeyed to the
    /// letter.
    AnthropicSdk,
    /// As [`LlmRetry3`](Self::LlmRetry3) with eight attempts.
    LlmRetry8,
    /// Eight attempts, full jitter from 0.5 s.
    FullJitter,
    /// As [`FullJitter`](Self::FullJitter), but the same jitter on top of the server's hint.
    RetryAfter,
    /// As [`LlmRetry8`](Self::LlmRetry8) behind a limiter that all clients share and queue at.
    Limiter,
    /// holdoff's standard policy with eight attempts.
    Holdoff,
}

impl Strategy {
    /// All of them, in the order of the table.
    pub const ALL: [Self; 8] = [
        Self::None,
        Self::LlmRetry3,
        Self::AnthropicSdk,
        Self::LlmRetry8,
        Self::FullJitter,
        Self::RetryAfter,
        Self::Limiter,
        Self::Holdoff,
    ];

    /// Its name on the command line and in every output.
    #[must_use]
    pub const fn id(self) -> &'static str {
        self.rules().id
    }

    /// The most requests one client makes.
    #[must_use]
    pub const fn max_attempts(self) -> u32 {
        match &self.rules().retry {
            Retry::Policy(policy) => policy.max_attempts().get(),
            Retry::Sdk => sdk::MAX_ATTEMPTS,
        }
    }

    pub(crate) const fn rules(self) -> &'static Rules {
        match self {
            Self::None => &NONE,
            Self::LlmRetry3 => &LLM_RETRY_3,
            Self::AnthropicSdk => &ANTHROPIC_SDK,
            Self::LlmRetry8 => &LLM_RETRY_8,
            Self::FullJitter => &FULL_JITTER,
            Self::RetryAfter => &RETRY_AFTER,
            Self::Limiter => &LIMITER,
            Self::Holdoff => &HOLDOFF,
        }
    }
}

impl FromStr for Strategy {
    type Err = UnknownStrategy;

    fn from_str(id: &str) -> Result<Self, UnknownStrategy> {
        Self::ALL.into_iter().find(|strategy| strategy.id() == id).ok_or(UnknownStrategy)
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

/// No strategy has that name; says which there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownStrategy;

impl fmt::Display for UnknownStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids = Strategy::ALL.map(Strategy::id);
        write!(f, "must be one or more of {}", ids.join(", "))
    }
}

impl Error for UnknownStrategy {}

/// What makes a strategy.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) id: &'static str,
    pub(crate) retry: Retry,
    pub(crate) header: Header,
    pub(crate) limit: Limit,
}

/// When to try again.
#[derive(Debug)]
pub(crate) enum Retry {
    /// As a holdoff policy says.
    Policy(Policy),
    /// As the SDK does, which no policy says.
    Sdk,
}

/// What becomes of `retry-after`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Header {
    Ignored,
    Read,
}

/// What is between the clients and the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    None,
    /// A limiter with the provider's own rate and burst, shared by all clients.
    Shared,
}

static NONE: Rules = Rules {
    id: "none",
    retry: Retry::Policy(valid!(PolicyConfig::new(DOUBLING).with_max_attempts(1).build())),
    header: Header::Ignored,
    limit: Limit::None,
};

static LLM_RETRY_3: Rules = Rules {
    id: "llm-retry-3",
    retry: Retry::Policy(valid!(PolicyConfig::new(DOUBLING).with_max_attempts(3).build())),
    header: Header::Ignored,
    limit: Limit::None,
};

static ANTHROPIC_SDK: Rules =
    Rules { id: "anthropic-sdk", retry: Retry::Sdk, header: Header::Read, limit: Limit::None };

static LLM_RETRY_8: Rules = Rules {
    id: "llm-retry-8",
    retry: Retry::Policy(valid!(PolicyConfig::new(DOUBLING).with_max_attempts(8).build())),
    header: Header::Ignored,
    limit: Limit::None,
};

static FULL_JITTER: Rules = Rules {
    id: "full-jitter",
    retry: Retry::Policy(valid!(PolicyConfig::new(FULL).with_max_attempts(8).build())),
    header: Header::Ignored,
    limit: Limit::None,
};

/// The published rule sleeps whatever it is told.
static RETRY_AFTER: Rules = Rules {
    id: "retry-after",
    retry: Retry::Policy(valid!(
        PolicyConfig::new(FULL)
            .with_max_attempts(8)
            .with_hint_spread(HintSpread::Envelope)
            .with_max_hint(Duration::MAX)
            .build()
    )),
    header: Header::Read,
    limit: Limit::None,
};

static LIMITER: Rules = Rules {
    id: "limiter",
    retry: Retry::Policy(valid!(PolicyConfig::new(DOUBLING).with_max_attempts(8).build())),
    header: Header::Ignored,
    limit: Limit::Shared,
};

static HOLDOFF: Rules = Rules {
    id: "holdoff",
    retry: Retry::Policy(valid!(PolicyConfig::standard().with_max_attempts(8).build())),
    header: Header::Read,
    limit: Limit::None,
};

/// 0.5 s doubling without end, give or take 10 %.
const DOUBLING: Backoff = valid!(
    BackoffConfig::exponential(Duration::from_millis(500))
        .with_jitter(Jitter::Proportional(Ratio::percent(10)))
        .build()
);

/// Anything from zero to 0.5 s doubling without end.
const FULL: Backoff = valid!(
    BackoffConfig::exponential(Duration::from_millis(500)).with_jitter(Jitter::Full).build()
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_leads_back_to_its_strategy() {
        for strategy in Strategy::ALL {
            assert_eq!(strategy.id().parse(), Ok(strategy));
        }
        for unknown in ["", "None", "limiter ", "llm-retry"] {
            assert_eq!(unknown.parse::<Strategy>(), Err(UnknownStrategy), "{unknown:?}");
        }
    }
}

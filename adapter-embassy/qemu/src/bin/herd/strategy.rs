//! The strategies of `herd run`, but for the SDK's, which is no policy.

use core::time::Duration;

use holdoff::{Backoff, BackoffConfig, HintSpread, Jitter, Policy, PolicyConfig, Ratio, valid};

/// How clients retry.
#[derive(Clone, Copy)]
pub(crate) enum Strategy {
    None,
    LlmRetry3,
    LlmRetry8,
    FullJitter,
    RetryAfter,
    Limiter,
    Holdoff,
}

impl Strategy {
    pub(crate) const ALL: [Self; 7] = [
        Self::None,
        Self::LlmRetry3,
        Self::LlmRetry8,
        Self::FullJitter,
        Self::RetryAfter,
        Self::Limiter,
        Self::Holdoff,
    ];

    pub(crate) const fn id(self) -> &'static str {
        self.rules().id
    }

    pub(crate) const fn rules(self) -> &'static Rules {
        match self {
            Self::None => &NONE,
            Self::LlmRetry3 => &LLM_RETRY_3,
            Self::LlmRetry8 => &LLM_RETRY_8,
            Self::FullJitter => &FULL_JITTER,
            Self::RetryAfter => &RETRY_AFTER,
            Self::Limiter => &LIMITER,
            Self::Holdoff => &HOLDOFF,
        }
    }
}

/// What makes a strategy.
pub(crate) struct Rules {
    pub(crate) id: &'static str,
    pub(crate) policy: Policy,
    pub(crate) header: Header,
    pub(crate) limit: Limit,
}

/// What becomes of `retry-after`.
#[derive(Clone, Copy)]
pub(crate) enum Header {
    Ignored,
    Read,
}

/// What is between the clients and the provider.
#[derive(Clone, Copy)]
pub(crate) enum Limit {
    None,
    Shared,
}

const fn doubling(id: &'static str, max_attempts: u32, limit: Limit) -> Rules {
    let config = PolicyConfig::new(DOUBLING).with_max_attempts(max_attempts);
    let Ok(policy) = config.build() else { panic!() };
    Rules { id, policy, header: Header::Ignored, limit }
}

static NONE: Rules = doubling("none", 1, Limit::None);
static LLM_RETRY_3: Rules = doubling("llm-retry-3", 3, Limit::None);
static LLM_RETRY_8: Rules = doubling("llm-retry-8", 8, Limit::None);
static LIMITER: Rules = doubling("limiter", 8, Limit::Shared);

static FULL_JITTER: Rules = Rules {
    id: "full-jitter",
    policy: valid!(PolicyConfig::new(FULL).with_max_attempts(8).build()),
    header: Header::Ignored,
    limit: Limit::None,
};

static RETRY_AFTER: Rules = Rules {
    id: "retry-after",
    policy: valid!(
        PolicyConfig::new(FULL)
            .with_max_attempts(8)
            .with_hint_spread(HintSpread::Envelope)
            .with_max_hint(Duration::MAX)
            .build()
    ),
    header: Header::Read,
    limit: Limit::None,
};

static HOLDOFF: Rules = Rules {
    id: "holdoff",
    policy: valid!(PolicyConfig::standard().with_max_attempts(8).build()),
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

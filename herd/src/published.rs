//! What has been published about the same experiment, from one real run each; about the probes, see
//! [`probes`].

pub mod probes;

use serde::Serialize;

use crate::setup::Setup;
use crate::strategy::Strategy;

/// A strategy's published figures; `None` where nothing was.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Published {
    /// Clients that got what they wanted.
    pub ok: Option<u32>,
    /// Requests that reached the provider.
    pub requests: Option<u32>,
    /// Those it answered with 429.
    pub rejected: Option<u32>,
    /// When the last successful answer was there (s).
    pub last_s: Option<f64>,
    /// When 95 % of the successful answers were there (s).
    pub p95_s: Option<f64>,
}

/// The figures published for `strategy`, if `setup` is the one they were measured in.
#[must_use]
pub fn figures(strategy: Strategy, setup: &Setup) -> Option<Published> {
    if *setup != Setup::PUBLISHED {
        return None;
    }
    const NOTHING: Published =
        Published { ok: None, requests: None, rejected: None, last_s: None, p95_s: None };
    let published = |ok, requests, rejected| Published {
        ok: Some(ok),
        requests: Some(requests),
        rejected: Some(rejected),
        ..NOTHING
    };
    match strategy {
        Strategy::None => Some(published(20, 100, 80)),
        Strategy::LlmRetry3 => Some(published(36, 255, 219)),
        Strategy::AnthropicSdk => Some(Published { ok: Some(40), ..NOTHING }),
        Strategy::LlmRetry8 => Some(Published {
            ok: Some(100),
            requests: Some(375),
            last_s: Some(16.6),
            p95_s: Some(16.1),
            ..NOTHING
        }),
        Strategy::FullJitter => Some(Published {
            ok: Some(100),
            requests: Some(408),
            last_s: Some(17.1),
            p95_s: Some(10.5),
            ..NOTHING
        }),
        Strategy::RetryAfter => {
            Some(Published { last_s: Some(11.8), p95_s: Some(9.1), ..published(100, 313, 213) })
        }
        Strategy::Limiter => Some(Published { last_s: Some(8.0), ..published(100, 100, 0) }),
        Strategy::Holdoff => None,
    }
}

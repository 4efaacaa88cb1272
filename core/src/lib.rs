//! Decides when to call a struggling service again, and when not to.
//!
//! Retry, backoff, circuit breaking and rate limiting are usually wrappers that know nothing of
//! each other: a server's hint bypasses the attempt cap, a retry runs past the deadline, everybody
//! whom the server told "one second" returns in the same second. Here they are **one machine**: a
//! [`Call`] is one logical call in flight, a driver asks it what to do next, does it, and reports
//! what happened.
//!
//! ```text
//!          now, sample                  what to do next
//! driver ─────────────▶ Call::poll   ──────────────────▶ Backoff, Throttled, Attempt, Done, Stop
//!          outcome                      uses (shared, through &self)
//!        ─────────────▶ Call::record ──────────────────▶ Limiter, CircuitBreaker, RetryBudget
//! ```
//!
//! The driver owns the clock, the sleep, the random numbers and the wire; the machine owns every
//! decision. So a service, a microcontroller and a simulator run the same logic.
//!
//! # Tour
//! - [`Policy`]: what to retry, how often and how long; presets [`Policy::STANDARD`],
//!   [`Policy::INTERACTIVE`], [`Policy::BATCH`], [`Policy::LLM`].
//! - [`Backoff`] and [`Jitter`]: a delay as a pure function, or as an iterator.
//! - [`Outcome`], [`Failure`], [`Classify`]: what an attempt came to.
//! - [`http`]: statuses, methods, `Retry-After` and its kin.
//! - [`Limiter`], [`CircuitBreaker`], [`RetryBudget`]: shared by all calls, without a lock.
//! - [`Upstream`]: one service with all three, [`Counters`] and an [`Observer`]; a `static`.
//! - [`UpstreamTable`]: one such for each of a bounded number of keys.
//! - [`Failover`]: which service to call when the first will not do.
//! - [`Call`], [`Step`], [`Stop`]: the machine.
//! - [`Reconnect`]: when to connect again, for links that are meant to stay (MQTT, TCP).
//! - [`drive`]: the one loop that runs it, asynchronous and blocking.
//! - [`Instant`], [`Clock`], [`Timer`]: the seam; [`TickClock`], over a 32-bit counter that wraps.
//!
//! ```
//! use core::cell::Cell;
//! use holdoff::{Call, Failure, Instant, Policy, Safety, classified, drive};
//!
//! let clock = Cell::new(Instant::EPOCH); // or `MonotonicClock`, feature `std`
//! let answer = drive::run_blocking(
//!     &clock,
//!     |delay| clock.set(clock.get().saturating_add(delay)), // or `std::thread::sleep`
//!     |now| Call::new(&Policy::INTERACTIVE, Safety::Idempotent, now),
//!     || 0x9e37_79b9_7f4a_7c15, // a random generator
//!     classified,
//!     |attempt| if attempt.number == 1 { Err(Failure::transient()) } else { Ok("hello") },
//! );
//! assert_eq!(answer, Ok("hello"));
//! ```
//!
//! # What this crate does not do
//! It never sleeps, never reads a clock and never draws a random number: all three are arguments.
//! It opens no connection, allocates nothing and contains no `unsafe` and no floating point. It
//! retries nothing by itself: adapters such as `holdoff-tokio` drive it.
//!
//! Why it is the way it is: [`_design`].
//!
//! # Features
//! None is on by default.
//! - `std`: [`Classify`] for `std::io::Error`, and a [`Clock`] on `std::time::Instant`.
//! - `critical-section`: 64-bit words behind a critical section, on targets without 64-bit atomics.
//! - `defmt`: `defmt::Format` for what there is to log on a device: events, stops, failures, steps,
//!   counters, configurations. Values go over the wire as numbers; no `core::fmt` is linked.

#![no_std]
#![forbid(unsafe_code)]

#[cfg(any(feature = "std", test))]
extern crate std;

mod backoff;
mod breaker;
mod budget;
mod call;
mod config;
mod counters;
pub mod drive;
mod failover;
pub mod http;
mod limiter;
mod outcome;
mod policy;
mod ratio;
mod reconnect;
mod sync;
mod table;
mod ticks;
mod time;
mod upstream;
mod wide;

pub use backoff::{Backoff, BackoffConfig, Delays, Jitter};
pub use breaker::{
    BreakerChange, BreakerConfig, BreakerState, CircuitBreaker, CircuitOpen, Mode, Permit,
};
pub use budget::{BudgetConfig, BudgetEmpty, RetryBudget};
pub use call::{
    Attempt, AttemptKind, Call, DelaySource, Event, Limit, Limits, Observation, Observer, Step,
    Stop,
};
pub use config::ConfigError;
pub use counters::{Counters, CountersSnapshot, StopCounts};
pub use failover::{Failover, NoCandidate, Route};
pub use limiter::{ChangeUnderWay, Limiter, Quota, Rate, Refusal, Reservation};
pub use outcome::{Class, Classify, Failure, Hint, Outcome, Safety, Sent, classified};
pub use policy::{HintSpread, Policy, PolicyConfig, UnhintedThrottle};
pub use ratio::Ratio;
pub use reconnect::{HintTooLong, Reconnect};
pub use table::{Entry, NoEntry, UpstreamTable};
pub use ticks::TickClock;
#[cfg(feature = "std")]
pub use time::MonotonicClock;
pub use time::{Clock, Instant, Timer};
pub use upstream::Upstream;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(doc)]
#[doc = include_str!("../docs/DESIGN.md")]
pub mod _design {}

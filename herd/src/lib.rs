//! The herd experiment: many clients, one rate limit, and what each retry strategy makes of it.
//!
//! Clients call a provider at the same instant. Its token bucket holds enough for a few of them;
//! the others are told 429 with a `retry-after` in whole seconds. How many requests does it take
//! until everybody has an answer, and how long?
//!
//! The clients are [`holdoff::Call`]s, driven as a production driver would, only that time is
//! virtual: an event queue jumps from one event to the next, so a run of minutes takes a
//! millisecond. Time is whole nanoseconds, the provider counts in whole fractions of a token, and
//! all chance comes from one seed: the same arguments give the same bytes. On the [`wire`] the same
//! clients call the provider over HTTP, in real time.
//!
//! ```
//! use holdoff_herd::experiment::Experiment;
//! use holdoff_herd::setup::Setup;
//! use holdoff_herd::sim::Unobserved;
//! use holdoff_herd::strategy::Strategy;
//!
//! let experiment = Experiment::new(Setup::PUBLISHED, &[Strategy::Limiter], 3, 1)?;
//! let rows = experiment.run(&mut Unobserved)?;
//! assert_eq!(rows[0].requests.median, 100.0);
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```
//!
//! Beside it, the [`probes`]: whether a circuit breaker lets one call through when it should, and
//! whether a policy tries again what is worth it; and a provider to [`serve`] real clients, over
//! HTTP and in real time.
//!
//! # Layers
//! A module imports only modules above it.
//! ```text
//! rate · setup                  the experiment's quantities
//! provider · queue              the world: a token bucket, and what happens when
//! sdk · strategy · client       the callers
//! sim                           one run
//! stats                         what a sample says
//! probes                        a circuit breaker and a retry policy, asked one thing each
//! published                     what others measured
//! serve                         a provider over HTTP
//! wire                          one run over HTTP
//! experiment                    all runs of all strategies
//! table · json · histogram · plot · files · progress · interrupt
//! error · cli · app             the command
//! ```

#![forbid(unsafe_code)]

pub mod app;
mod cli;
mod client;
mod error;
pub mod experiment;
mod files;
mod histogram;
mod interrupt;
mod json;
mod plot;
pub mod probes;
mod progress;
pub mod provider;
pub mod published;
mod queue;
pub mod rate;
mod sdk;
pub mod serve;
pub mod setup;
pub mod sim;
pub mod stats;
pub mod strategy;
pub mod table;
pub mod wire;

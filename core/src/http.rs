//! What HTTP says about trying again: statuses, methods and the headers that carry a hint.
//!
//! Input is bytes, any bytes. Nothing here panics, allocates or reads a clock: wall time comes in
//! as an argument and is used once, to turn an HTTP-date into a delay.
//!
//! ```
//! use core::time::Duration;
//! use holdoff::http::{Signals, Statuses};
//! use holdoff::{Class, Hint, Outcome};
//!
//! let wall_now = Some(Duration::from_secs(784_111_657));
//! let headers = [("Retry-After", &b"Sun, 06 Nov 1994 08:49:37 GMT"[..])];
//! let signals = Signals::from_headers(headers, wall_now);
//! assert_eq!(signals.hint, Hint::after(Duration::from_secs(120)));
//!
//! let Outcome::Failure(failure) = Statuses::HTTP.outcome(503, signals) else { panic!() };
//! assert_eq!((failure.class, failure.hint), (Class::Transient, signals.hint));
//! ```

pub mod date;
mod decimal;
mod rate_headers;
pub mod retry_after;
mod status;
mod text;

pub use rate_headers::rate_limit;
pub use retry_after::Signals;
pub use status::{Statuses, method_safety};

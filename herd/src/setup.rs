//! The set-up: how many clients, and what the provider lets through.

use core::error::Error;
use core::fmt;
use core::num::NonZeroU32;
use core::time::Duration;

use holdoff::{ConfigError, Quota};

use crate::rate::Rate;

/// The clients, the provider and the way between them. All clients call at time 0.
///
/// Every set-up ends well within the 146 years of nanoseconds that a [`holdoff::Limiter`] can
/// count: its floor is at most 100 years, a `retry-after` at most 10⁶ s and the round trip an hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    clients: NonZeroU32,
    burst: NonZeroU32,
    rate: Rate,
    round_trip: Duration,
    floor: Duration,
}

impl Setup {
    /// The set-up whose figures have been published: 100 clients, burst 20, 10 tokens a second, no
    /// latency.
    pub const PUBLISHED: Self = Self {
        // Unwrapped when this is compiled.
        clients: NonZeroU32::new(100).unwrap(),
        burst: NonZeroU32::new(20).unwrap(),
        rate: Rate::from_micros(10_000_000).unwrap(),
        round_trip: Duration::ZERO,
        floor: Duration::from_secs(8),
    };

    /// The longest floor: 100 years of 365 days.
    const FLOOR_MAX: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);
    /// The longest round trip.
    pub const ROUND_TRIP_MAX: Duration = Duration::from_secs(60 * 60);

    /// `clients` who call a provider that answers `burst` requests at once and then `rate` a
    /// second.
    ///
    /// A request takes half the round trip to arrive, its answer the other half.
    ///
    /// # Errors
    /// [`SetupError`] if the run could take centuries.
    pub fn new(
        clients: NonZeroU32,
        burst: NonZeroU32,
        rate: Rate,
        round_trip: Duration,
    ) -> Result<Self, SetupError> {
        if round_trip > Self::ROUND_TRIP_MAX {
            return Err(SetupError::RoundTripTooLong);
        }
        let beyond_burst = u64::from(clients.get().saturating_sub(burst.get()));
        // In seconds and nanoseconds: below 2^32 clients times 10^6, so everything fits.
        let micros = beyond_burst * 1_000_000;
        let rest = u128::from(micros % rate.micros()) * 1_000_000_000 / u128::from(rate.micros());
        // OK: the remainder is below the rate, so this is below 10^9.
        let rest = u64::try_from(rest).unwrap_or(u64::MAX);
        let floor = Duration::from_secs(micros / rate.micros()) + Duration::from_nanos(rest);
        if floor > Self::FLOOR_MAX {
            return Err(SetupError::FloorTooLong);
        }
        Ok(Self { clients, burst, rate, round_trip, floor })
    }

    /// How many clients call.
    #[must_use]
    pub const fn clients(&self) -> u32 {
        self.clients.get()
    }

    /// How many requests the provider answers at once.
    #[must_use]
    pub const fn burst(&self) -> u32 {
        self.burst.get()
    }

    /// How many requests it answers a second after that.
    #[must_use]
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// From sending a request to having its answer.
    #[must_use]
    pub const fn round_trip(&self) -> Duration {
        self.round_trip
    }

    /// The earliest time at which everybody can have been served: `(clients - burst) / rate`, at
    /// least zero, rounded down to a nanosecond. The round trip comes on top.
    #[must_use]
    pub const fn floor(&self) -> Duration {
        self.floor
    }

    /// The provider's limit as a client-side limiter knows it.
    ///
    /// # Errors
    /// [`ConfigError::RefillTooLong`] if it would take more than 417 days to refill the burst.
    pub const fn quota(&self) -> Result<Quota, ConfigError> {
        // The time per token is rounded up, so the limiter is never faster than the provider.
        Quota::new(holdoff::Rate::every(self.rate.time_per_token()), self.burst.get())
    }
}

impl fmt::Display for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (clients, burst, rate) = (self.clients, self.burst, self.rate);
        let call = if clients.get() == 1 { "client calls" } else { "clients call" };
        write!(
            f,
            "{clients} {call} at time 0; the provider answers {burst} at once, then {rate} a second"
        )?;
        match self.round_trip.as_millis() {
            0 => Ok(()),
            millis => write!(f, "; the round trip takes {millis} ms"),
        }
    }
}

/// Why there is no such set-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetupError {
    /// Serving everybody takes more than 100 years.
    FloorTooLong,
    /// The round trip is longer than [`Setup::ROUND_TRIP_MAX`].
    RoundTripTooLong,
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FloorTooLong => "(clients - burst) / rate must be at most 100 years",
            Self::RoundTripTooLong => "the round trip must be at most an hour",
        })
    }
}

impl Error for SetupError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn setup(clients: u32, burst: u32, rate: &str) -> Result<Setup, SetupError> {
        let rate = rate.parse().expect("a rate");
        let nonzero = |n| NonZeroU32::new(n).expect("not zero");
        Setup::new(nonzero(clients), nonzero(burst), rate, Duration::ZERO)
    }

    #[test]
    fn the_floor_is_exact() {
        for (clients, burst, rate, nanos) in [
            (100, 20, "10", 8_000_000_000),
            (20, 20, "10", 0),
            (1, u32::MAX, "0.000001", 0),
            (2, 1, "3", 333_333_333),
            (u32::MAX, 1, "1000000", 4_294_967_294_000),
            (3, 1, "2.5", 800_000_000),
        ] {
            let floor = setup(clients, burst, rate).expect("a set-up").floor();
            assert_eq!(floor, Duration::from_nanos(nanos), "{clients} {burst} {rate}");
        }
        assert_eq!(setup(100, 20, "10"), Ok(Setup::PUBLISHED));
    }

    #[test]
    fn a_run_of_centuries_is_refused() {
        assert!(setup(3_154, 1, "0.000001").is_ok());
        assert_eq!(setup(3_155, 1, "0.000001"), Err(SetupError::FloorTooLong));
        assert_eq!(setup(u32::MAX, 1, "0.000001"), Err(SetupError::FloorTooLong));

        let published = Setup::PUBLISHED;
        let with =
            |round_trip| Setup::new(published.clients, published.burst, published.rate, round_trip);
        assert!(with(Setup::ROUND_TRIP_MAX).is_ok());
        let longer = Setup::ROUND_TRIP_MAX + Duration::from_nanos(1);
        assert_eq!(with(longer), Err(SetupError::RoundTripTooLong));
    }
}

//! A retry budget in one word: retries are at most a reserve plus a share of the calls.
//!
//! ```text
//! word  63..36 when it last trickled (s, 0: not yet, wraps after 8 years)
//!       35..0  level in millionths of a retry
//! ```

use core::error::Error;
use core::fmt;

use crate::config::ConfigError;
use crate::ratio::Ratio;
use crate::sync::{Next, Word};
use crate::time::Instant;
use crate::wide::divided;

/// What a retry costs, in millionths: the unit of the level.
const RETRY: u64 = 1_000_000;
const SECOND_SHIFT: u32 = 36;
const LEVEL_MAX: u64 = (1 << SECOND_SHIFT) - 1;
const SECOND_MASK: u64 = (1 << 28) - 1;

/// A [`RetryBudget`] under construction.
///
/// ```
/// use holdoff::{BudgetConfig, Ratio, RetryBudget, valid};
///
/// // Retries are at most 10 % of the calls, and 10 more.
/// static BUDGET: RetryBudget = valid!(BudgetConfig::new(10, Ratio::percent(10)).build());
/// # let _ = &BUDGET;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[must_use = "a configuration does nothing until it is built"]
pub struct BudgetConfig {
    reserve: u32,
    capacity: Option<u32>,
    ratio: Ratio,
    trickle: Ratio,
}

impl BudgetConfig {
    /// `reserve` retries to begin with, and `ratio` of a retry more for each call.
    ///
    /// `ratio` must be at most 1.
    pub const fn new(reserve: u32, ratio: Ratio) -> Self {
        Self { reserve, capacity: None, ratio, trickle: Ratio::ZERO }
    }

    /// The most retries that can be saved up, so that a quiet day does not pay for a storm.
    /// Defaults to 100, or to the reserve if that is more.
    ///
    /// Must be 1 to 68,719 and at least the reserve.
    pub const fn with_capacity(self, capacity: u32) -> Self {
        Self { capacity: Some(capacity), ..self }
    }

    /// Also refills by so much of a retry each second, for services that are rarely called.
    /// Defaults to none.
    ///
    /// Must be at most 1.
    pub const fn with_trickle(self, per_second: Ratio) -> Self {
        Self { trickle: per_second, ..self }
    }

    /// The finished budget, its reserve in it.
    ///
    /// ```compile_fail
    /// use holdoff::{BudgetConfig, Ratio, RetryBudget, valid};
    ///
    /// static BUDGET: RetryBudget = valid!(BudgetConfig::new(10, Ratio::percent(101)).build());
    /// ```
    ///
    /// # Errors
    /// [`ConfigError::BudgetCapacity`], [`ConfigError::RatioAboveOne`].
    #[cfg(not(loom))]
    pub const fn build(self) -> Result<RetryBudget, ConfigError> {
        match self.terms() {
            Ok(terms) => Ok(RetryBudget { word: Word::new(terms.reserve()), terms }),
            Err(error) => Err(error),
        }
    }

    /// The finished budget, its reserve in it.
    ///
    /// # Errors
    /// As outside of models.
    #[cfg(loom)]
    pub fn build(self) -> Result<RetryBudget, ConfigError> {
        let terms = self.terms()?;
        Ok(RetryBudget { word: Word::new(terms.reserve()), terms })
    }

    const fn terms(self) -> Result<Terms, ConfigError> {
        const ALL: u32 = Ratio::ONE.as_ppm();
        let capacity = match self.capacity {
            Some(capacity) => capacity,
            None if self.reserve < 100 => 100,
            None => self.reserve,
        };
        if capacity == 0 || capacity < self.reserve || capacity as u64 * RETRY > LEVEL_MAX {
            return Err(ConfigError::BudgetCapacity);
        }
        if self.ratio.as_ppm() > ALL || self.trickle.as_ppm() > ALL {
            return Err(ConfigError::RatioAboveOne);
        }
        Ok(Terms { reserve: self.reserve, capacity, ratio: self.ratio, trickle: self.trickle })
    }
}

/// A validated configuration.
#[derive(Clone, Copy, Debug)]
struct Terms {
    reserve: u32,
    capacity: u32,
    ratio: Ratio,
    trickle: Ratio,
}

impl Terms {
    const fn reserve(self) -> u64 {
        self.reserve as u64 * RETRY // OK: at most `full`.
    }

    const fn full(self) -> u64 {
        self.capacity as u64 * RETRY // OK: at most LEVEL_MAX.
    }
}

/// There is no retry left in the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct BudgetEmpty;

impl fmt::Display for BudgetEmpty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("retry budget is used up")
    }
}

impl Error for BudgetEmpty {}

/// Limits retries to a reserve plus a share of the calls, exactly, whatever the interleaving;
/// usable through `&self` from any thread, task or interrupt.
///
/// When everything fails, each client would multiply its load by its attempts; with a budget of 10
/// % the load grows to 1.1 times (Google, "Site Reliability Engineering", chapter 21). 24 bytes,
/// configuration included; a full budget is read and not written.
///
/// ```
/// use holdoff::{BudgetConfig, Instant, Ratio, RetryBudget};
///
/// let now = Instant::EPOCH;
/// let budget: RetryBudget = BudgetConfig::new(2, Ratio::percent(50)).build()?;
/// budget.withdraw(now).unwrap();
/// budget.withdraw(now).unwrap();
/// assert!(budget.withdraw(now).is_err());
/// budget.deposit();
/// budget.deposit(); // two calls at 50 %: one retry
/// assert_eq!(budget.level(now), 1);
/// # Ok::<(), holdoff::ConfigError>(())
/// ```
#[derive(Debug)]
pub struct RetryBudget {
    word: Word,
    terms: Terms,
}

impl RetryBudget {
    /// A call was made: its share of a retry comes in, up to the capacity.
    #[inline]
    pub fn deposit(&self) {
        self.add(u64::from(self.terms.ratio.as_ppm()));
    }

    /// Takes one retry out, when it is decided and not when it is sent.
    ///
    /// # Errors
    /// [`BudgetEmpty`] if there is no whole one; nothing is taken.
    pub fn withdraw(&self, now: Instant) -> Result<(), BudgetEmpty> {
        self.word.update(|word| {
            let trickled = self.trickled(word, now);
            if trickled & LEVEL_MAX >= RETRY {
                Next::Store(trickled - RETRY, Ok(())) // touches the level only
            } else if trickled != word {
                Next::Store(trickled, Err(BudgetEmpty)) // The first look counts, too.
            } else {
                Next::Keep(Err(BudgetEmpty))
            }
        })
    }

    /// Puts a retry back that was taken out and not sent.
    pub fn refund(&self) {
        self.add(RETRY);
    }

    /// As it was built.
    pub(crate) fn renew(&self) {
        self.word.update(|_| Next::Store(self.terms.reserve(), ()));
    }

    /// Whole retries in the budget at `now`.
    #[must_use]
    pub fn level(&self, now: Instant) -> u32 {
        let retries = (self.trickled(self.word.load(), now) & LEVEL_MAX) / RETRY;
        u32::try_from(retries).unwrap_or(u32::MAX)
    }

    #[cfg_attr(target_pointer_width = "64", inline)]
    #[cfg_attr(not(target_pointer_width = "64"), inline(never))]
    fn add(&self, share: u64) {
        let full = self.terms.full();
        self.word.update(|word| {
            let level = word & LEVEL_MAX;
            if level >= full || share == 0 {
                return Next::Keep(());
            }
            Next::Store(word + share.min(full - level), ()) // OK: it stays in the level.
        });
    }

    /// The word with what has trickled in since it last did.
    fn trickled(&self, word: u64, now: Instant) -> u64 {
        let trickle = u64::from(self.terms.trickle.as_ppm());
        if trickle == 0 {
            return word;
        }
        // One more than it is, so that 0 is free to say "not yet".
        let second = ((divided::<1_000_000_000>(now.as_nanos()).0 + 1) & SECOND_MASK).max(1);
        let last = word >> SECOND_SHIFT;
        let elapsed = second.wrapping_sub(last) & SECOND_MASK;
        if last == 0 {
            // Nothing trickles before the first look, whatever the clock's epoch.
            return second << SECOND_SHIFT | word & LEVEL_MAX;
        }
        if elapsed > SECOND_MASK - SECOND_MASK / 8 {
            return word; // The clock stepped back, by up to a year; not forward by seven.
        }
        let level = (word & LEVEL_MAX) + elapsed * trickle; // OK: below 2^48.
        second << SECOND_SHIFT | level.min(self.terms.full())
    }
}

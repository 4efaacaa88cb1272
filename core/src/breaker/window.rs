//! Outcomes counted over time, in rolling buckets.
//!
//! ```text
//! bucket  63..32 number of its period | 31..16 calls | 15..0 failures
//! ```
//!
//! Period number k is counted in bucket k mod n; a bucket found with an older number starts anew.

use crate::sync::{Next, Word};

const NUMBER_SHIFT: u32 = 32;
const CALLS_SHIFT: u32 = 16;
const COUNT_MAX: u64 = (1 << CALLS_SHIFT) - 1;

/// The number of the period of `period` ms that `now` (ms) lies in; wraps.
#[expect(clippy::cast_possible_truncation, reason = "numbers wrap and are compared as such")]
pub(super) fn number(now: u64, period: u32) -> u32 {
    now.checked_div(period.into()).unwrap_or(0) as u32
}

/// Counts an outcome in period `number`.
///
/// A clock that steps back counts in the newest period of its bucket. A bucket that is full is
/// halved: the share is what matters.
pub(super) fn count(buckets: &[Word], number: u32, failed: bool) {
    let Some(bucket) = number.checked_rem(len(buckets)).and_then(|n| buckets.get(n as usize))
    else {
        return;
    };
    bucket.update(|word| {
        let (mut number_there, mut calls, mut failures) = parts(word);
        if calls == 0 || is_newer(number, number_there) {
            (number_there, calls, failures) = (number, 0, 0);
        }
        if calls == COUNT_MAX {
            (calls, failures) = (calls / 2, failures.div_ceil(2));
        }
        calls += 1;
        failures += u64::from(failed);
        let number = u64::from(number_there) << NUMBER_SHIFT;
        Next::Store(number | calls << CALLS_SHIFT | failures, ())
    });
}

/// Calls and failures in period `number` and those before it that the buckets cover.
pub(super) fn totals(buckets: &[Word], number: u32) -> (u64, u64) {
    let covered = len(buckets);
    buckets.iter().map(|bucket| parts(bucket.load())).fold((0, 0), |(calls, failures), parts| {
        let (number_there, c, f) = parts;
        let is_covered = !is_newer(number, number_there.wrapping_add(covered - 1));
        if is_covered { (calls + c, failures + f) } else { (calls, failures) }
    })
}

/// Forgets everything.
pub(super) fn clear(buckets: &[Word]) {
    for bucket in buckets {
        bucket.update(|word| Next::Store(word >> NUMBER_SHIFT << NUMBER_SHIFT, ()));
    }
}

/// Whether `a` comes after `b`, numbers wrapping.
const fn is_newer(a: u32, b: u32) -> bool {
    a != b && a.wrapping_sub(b) < 1 << 31
}

const fn parts(word: u64) -> (u32, u64, u64) {
    ((word >> NUMBER_SHIFT) as u32, word >> CALLS_SHIFT & COUNT_MAX, word & COUNT_MAX)
}

fn len(buckets: &[Word]) -> u32 {
    u32::try_from(buckets.len()).unwrap_or(u32::MAX)
}

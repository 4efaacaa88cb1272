//! The circuit breaker as pure transitions: word × event → word.
//!
//! ```text
//!            63..62  61..60  59..50      49..46  45..42     41..0
//! closed       0     mode    generation  step    0          37..32 missing | 31..0 outcomes or run
//! open         1     mode    generation  step    -          end (ms)
//! half-open    2     mode    generation  step    successes  end of the probe's lease (ms)
//! and free     3     mode    generation  step    successes  end of the last probe's lease (ms)
//!
//!            trip            admit after the end: probe
//!  Closed ─────────▶ Open ───────────────────────────────▶ HalfOpen ──┐
//!    ▲                ▲                                      │ │  ▲   │ neutral, or a success
//!    │                └───────────── probe failed ───────────┘ │  └───┘ that is not the last
//!    └────────────────────────────── last probe succeeded ─────┘
//! ```
//!
//! The generation moves with every trip, every probe and every closing. A permit carries the
//! generation that it was admitted in, and a report from another generation changes nothing: late
//! results from before a trip are ignored, and so is a probe whose place another has taken. It
//! wraps after 1024 moves, each of which takes an open period or a probe.
//!
//! `missing` says how many outcomes the window of a rate still lacks, so that a closed breaker to
//! which another success makes no difference holds zero there, whatever its rule.
//!
//! `step` says how often the open period has grown: in `closed` the one a next trip would use.
//!
//! Transitions change what they must in the word as it is: taken apart and put together again, it
//! would cost several times the code where registers have 32 bits.

use super::config::Terms;
use super::millis::{TIME_MAX, is_before};
use crate::time::Instant;

/// How a breaker is run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Mode {
    /// Admits everything and learns nothing.
    Disabled,
    /// Admits nothing.
    ForcedOpen,
    /// Decides: the default.
    #[default]
    Normal,
    /// Decides but admits everything; the permit says whether it would have been refused.
    Shadow,
}

/// When a closed breaker trips.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Rule {
    /// This many failures in a row.
    Consecutive { failures: u32 },
    /// More than `ppm` of the calls in the buckets, of which there are at least `least`. Counted
    /// beside the word, in periods of so many milliseconds.
    OverTime { least: u16, period: u32, ppm: u32 },
    /// At least `ppm` of the last `window` (at most 32) outcomes, of which there are at least
    /// `least`.
    Rate { window: u8, least: u8, ppm: u32 },
}

/// As what a call is admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Call,
    /// The one that finds out if the service is back.
    Probe,
    /// Although the verdict was no: reports nothing.
    Shadow,
}

/// How a call or a probe ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Failure,
    Success,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Closed,
    Open,
    HalfOpen,
}

/// A closed breaker, nothing counted.
pub(super) const fn closed(rule: Rule) -> u64 {
    match rule {
        Rule::Rate { window, .. } => (window as u64) << MISSING_SHIFT,
        Rule::Consecutive { .. } | Rule::OverTime { .. } => 0,
    }
}

/// The generation of a breaker that is closed and decides for itself: the common case, in one look.
#[inline]
pub(super) const fn healthy(word: u64) -> Option<u16> {
    if word >> MODE_SHIFT == 0 { Some(generation(word)) } else { None }
}

/// The end (ms) of the open period that a breaker which decides for itself is in.
#[inline]
pub(super) const fn open_end(word: u64) -> Option<u64> {
    if word >> MODE_SHIFT == OPEN >> MODE_SHIFT { Some(end(word)) } else { None }
}

/// As what a call is admitted at `now`; `None` if it is refused.
#[cfg_attr(target_pointer_width = "64", inline)]
#[cfg_attr(not(target_pointer_width = "64"), inline(never))]
pub(super) fn role(word: u64, now: Instant) -> Option<Role> {
    match (mode(word), phase(word)) {
        (Mode::ForcedOpen, _) => None,
        (Mode::Disabled, _) | (_, Phase::Closed) => Some(Role::Call),
        _ if is_free(word) || !is_before(now, end(word)) => Some(Role::Probe),
        (Mode::Normal, _) => None,
        (Mode::Shadow, _) => Some(Role::Shadow),
    }
}

/// The slot goes to a new probe, until `lease_end` (ms).
pub(super) const fn probed(word: u64, lease_end: u64) -> u64 {
    moved(word) & !(PHASE | TIME_MAX) | HALF_OPEN | lease_end
}

/// Open until `end` (ms), for an open period that has grown `step` times.
pub(super) const fn opened(word: u64, step: u8, end: u64) -> u64 {
    moved(word) & (MODE | GENERATION) | OPEN | (step as u64) << STEP_SHIFT | end
}

/// Run in `mode` from now on, closed and with nothing counted.
pub(super) const fn switched(word: u64, mode: Mode, rule: Rule) -> u64 {
    let mode = match mode {
        Mode::Normal => 0,
        Mode::Shadow => 1,
        Mode::Disabled => 2,
        Mode::ForcedOpen => 3,
    };
    moved(word) & GENERATION | mode << MODE_SHIFT | closed(rule)
}

/// The word after a report that a call admitted in `generation` ended like this; that of a breaker
/// which opens says only so, and [`opened`] makes it whole. `trips` says whether a closed breaker
/// opens, whatever it has counted.
#[inline]
pub(super) fn reported(
    word: u64,
    generation: u16,
    ending: Ending,
    terms: &Terms,
    trips: bool,
) -> u64 {
    if !counts(word, generation) || mode(word) == Mode::Disabled {
        return word;
    }
    match (phase(word), ending) {
        (Phase::Closed, _) if trips => OPEN,
        (Phase::Open, _) => word,
        (Phase::Closed, _) => counted(word, terms.rule, ending == Ending::Failure),
        (Phase::HalfOpen, Ending::Failure) => OPEN,
        (Phase::HalfOpen, Ending::Success) => {
            // OK: below `probes`, which fits four bits.
            let won = freed(moved(word)) + (1 << SUCCESSES_SHIFT);
            if won >> SUCCESSES_SHIFT & NIBBLE < u64::from(terms.probes) {
                return won;
            }
            won & (MODE | GENERATION) | u64::from(grown(word)) << STEP_SHIFT | closed(terms.rule)
        }
    }
}

/// The slot is free; until when it was taken at most tells how long others have been refused.
pub(super) const fn freed(word: u64) -> u64 {
    word | FREE
}

/// Whether it is.
pub(super) const fn is_free(word: u64) -> bool {
    word & PHASE == FREE
}

/// How the breaker is run.
pub(super) const fn mode(word: u64) -> Mode {
    match word >> MODE_SHIFT & 3 {
        0 => Mode::Normal,
        1 => Mode::Shadow,
        2 => Mode::Disabled,
        _ => Mode::ForcedOpen,
    }
}

pub(super) const fn phase(word: u64) -> Phase {
    match word >> PHASE_SHIFT {
        0 => Phase::Closed,
        1 => Phase::Open,
        _ => Phase::HalfOpen,
    }
}

/// The end (ms) of the open period, or of the lease of the probe, or of the last one.
pub(super) const fn end(word: u64) -> u64 {
    word & TIME_MAX
}

/// How often the open period has grown, or has for a next trip.
pub(super) const fn step(word: u64) -> u8 {
    (word >> STEP_SHIFT & NIBBLE) as u8
}

/// The step after that, if there is one.
pub(super) const fn grown(word: u64) -> u8 {
    let step = step(word);
    if step < MAX_STEP { step + 1 } else { MAX_STEP }
}

/// Whether reports of calls admitted in `of` still count.
#[inline]
pub(super) const fn counts(word: u64, of: u16) -> bool {
    generation(word) == of
}

/// Whether the probe admitted in `generation` is under way.
pub(super) fn is_half_open(word: u64, generation: u16) -> bool {
    phase(word) == Phase::HalfOpen && counts(word, generation)
}

/// Whether a success of a call admitted in `generation` leaves the breaker as it is: the common
/// case, in one look.
#[inline]
pub(super) const fn is_at_rest(word: u64, generation: u16) -> bool {
    word & !(MODE | STEP) == (generation as u64) << GENERATION_SHIFT
}

/// A closed breaker with one more outcome, by which it may open.
#[expect(clippy::cast_possible_truncation, reason = "each field is cut to its width on purpose")]
fn counted(word: u64, rule: Rule, failed: bool) -> u64 {
    let outcomes = word as u32;
    let payload = match rule {
        Rule::Consecutive { failures } => {
            // OK: below `failures`.
            let run = if failed { outcomes + 1 } else { 0 };
            if run >= failures {
                return OPEN;
            }
            u64::from(run)
        }
        Rule::OverTime { .. } => return word,
        Rule::Rate { window, least, ppm } => {
            let mask = u32::MAX >> (32 - u32::from(window)); // OK: window is 1 to 32.
            let outcomes = (outcomes << 1 | u32::from(failed)) & mask;
            let missing = ((word >> MISSING_SHIFT) as u32 & MISSING_MASK).saturating_sub(1);
            let filled = u32::from(window) - missing; // OK: it starts as the window and falls.
            // OK: both products are at most 32 times a million.
            if filled >= u32::from(least) && outcomes.count_ones() * 1_000_000 >= ppm * filled {
                return OPEN;
            }
            u64::from(missing) << MISSING_SHIFT | u64::from(outcomes)
        }
    };
    word >> STEP_SHIFT << STEP_SHIFT | payload
}

const PHASE_SHIFT: u32 = 62;
const PHASE: u64 = 3 << PHASE_SHIFT;
const OPEN: u64 = 1 << PHASE_SHIFT;
const HALF_OPEN: u64 = 2 << PHASE_SHIFT;
const FREE: u64 = 3 << PHASE_SHIFT;
const MODE_SHIFT: u32 = 60;
const MODE: u64 = 3 << MODE_SHIFT;
const GENERATION_SHIFT: u32 = 50;
const GENERATION_MASK: u16 = (1 << 10) - 1;
const GENERATION: u64 = (GENERATION_MASK as u64) << GENERATION_SHIFT;
const STEP_SHIFT: u32 = 46;
const NIBBLE: u64 = 0xf;
const STEP: u64 = NIBBLE << STEP_SHIFT;
const MAX_STEP: u8 = 15;
const SUCCESSES_SHIFT: u32 = 42;
const MISSING_SHIFT: u32 = 32;
const MISSING_MASK: u32 = 0x3f;

/// What tells admissions before a move from those after it.
pub(super) const fn generation(word: u64) -> u16 {
    (word >> GENERATION_SHIFT) as u16 & GENERATION_MASK
}

/// In the next generation.
const fn moved(word: u64) -> u64 {
    // OK: only the generation is taken of the sum, and a carry out of it is lost.
    let next = word.wrapping_add(1 << GENERATION_SHIFT);
    word & !GENERATION | next & GENERATION
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generations_wrap_and_leave_the_rest_alone() {
        let first = switched(0, Mode::Shadow, Rule::Consecutive { failures: 1 });
        let mut word = opened(first, 7, 9);
        let opened = word;
        for _ in 1..=GENERATION_MASK {
            word = moved(word);
            assert_eq!(word & !GENERATION, opened & !GENERATION);
            assert_ne!(generation(word), generation(opened));
        }
        assert_eq!(moved(word), opened);
        assert_eq!((mode(word), step(word), end(word)), (Mode::Shadow, 7, 9));
    }
}

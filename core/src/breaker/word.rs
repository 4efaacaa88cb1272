//! The circuit breaker as pure transitions: word × event → word.
//!
//! ```text
//!            63..62  61..60  59..50      49..46  45..42     41..0
//! closed       0     mode    generation  step    0          37..32 missing | 31..0 outcomes or run
//! open         1     mode    generation  step    -          end (ms)
//! half-open    2     mode    generation  step    successes  end of the probe's lease (ms), 0: free
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

impl Rule {
    /// What a closed breaker has counted when it has counted nothing.
    const fn nothing(self) -> Phase {
        let missing = if let Self::Rate { window, .. } = self { window } else { 0 };
        Phase::Closed { missing, outcomes: 0 }
    }
}

/// How a call or a probe ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Failure,
    Neutral,
    Success,
}

/// The answer to somebody who asks to call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// Go ahead; reports count for this generation.
    Call { generation: u16 },
    /// Go ahead as the one probe.
    Probe { generation: u16 },
    /// Not before this time (ms); `None` if only a change of mode can help.
    Refused { retry_at: Option<u64> },
}

/// The latest time a word can hold (ms): 139 years after the epoch.
pub(super) const TIME_MAX: u64 = (1 << 42) - 1;

/// A new breaker: closed, nothing counted.
pub(super) const fn closed(rule: Rule) -> u64 {
    Fields { phase: rule.nothing(), mode: Mode::Normal, generation: 0, step: 0 }.packed()
}

/// The generation of a breaker that is closed and decides for itself: the common case, in one look.
#[inline]
pub(super) const fn healthy(word: u64) -> Option<u16> {
    if word >> MODE_SHIFT == 0 { Some(generation(word)) } else { None }
}

/// The end (ms) of the open period that a breaker which decides for itself is in.
#[inline]
pub(super) const fn open_end(word: u64) -> Option<u64> {
    if word >> MODE_SHIFT == 1 << (PHASE_SHIFT - MODE_SHIFT) { Some(word & TIME_MAX) } else { None }
}

/// Asks to call at `now`; a probe would hold the slot until `lease_end` (both ms).
///
/// Returns the new word if it changes.
pub(super) const fn admit(word: u64, now: u64, lease_end: u64) -> (Option<u64>, Admission) {
    let fields = Fields::unpacked(word);
    match (fields.mode, fields.phase) {
        (Mode::ForcedOpen, _) => (None, Admission::Refused { retry_at: None }),
        (Mode::Disabled, _) | (_, Phase::Closed { .. }) => {
            (None, Admission::Call { generation: fields.generation })
        }
        (_, Phase::Open { end }) if now < end => (None, Admission::Refused { retry_at: Some(end) }),
        (_, Phase::Open { .. }) => fields.probe(lease_end, 0),
        (_, Phase::HalfOpen { lease, .. }) if lease > now => {
            (None, Admission::Refused { retry_at: Some(lease) })
        }
        (_, Phase::HalfOpen { successes, .. }) => fields.probe(lease_end, successes),
    }
}

/// The word of a closed breaker of that generation with one more outcome in it; `None` if there is
/// more to the report than that.
#[inline]
pub(super) const fn noted(word: u64, generation: u16, rule: Rule, ending: Ending) -> Option<u64> {
    let fields = Fields::unpacked(word);
    let Phase::Closed { missing, outcomes } = fields.phase else { return None };
    let is_deaf = matches!(fields.mode, Mode::Disabled) || matches!(ending, Ending::Neutral);
    if fields.generation != generation || is_deaf {
        return None;
    }
    match counted(rule, missing, outcomes, matches!(ending, Ending::Failure)) {
        Counted::Trip => None,
        Counted::Window { missing, outcomes } => {
            Some(word >> STEP_SHIFT << STEP_SHIFT | closed_payload(missing, outcomes))
        }
    }
}

/// What a report needs to know beside the word.
pub(super) struct Terms<S, O> {
    pub(super) rule: Rule,
    /// Whether a closed breaker opens, whatever its word has counted.
    pub(super) trips: bool,
    /// Successful probes in a row that close the breaker.
    pub(super) probes: u8,
    /// Whether it has been closed long enough for the open period to start from its base again.
    pub(super) is_stable: S,
    /// The end (ms) of an open period that has grown so often.
    pub(super) opens_until: O,
}

/// Reports how a call admitted in `generation` ended; the new word if it changes.
#[inline]
pub(super) fn report<S: FnOnce() -> bool, O: FnOnce(u8) -> u64>(
    word: u64,
    generation: u16,
    ending: Ending,
    terms: Terms<S, O>,
) -> Option<u64> {
    let fields = Fields::unpacked(word);
    if fields.generation != generation || fields.mode == Mode::Disabled {
        return None;
    }
    let step = match (fields.phase, ending) {
        (Phase::Open { .. }, _) => return None,
        (Phase::Closed { .. }, _) if terms.trips => fields.next_step(terms.is_stable),
        (Phase::Closed { .. }, Ending::Neutral) => return None,
        (Phase::Closed { missing, outcomes }, _) => {
            match counted(terms.rule, missing, outcomes, matches!(ending, Ending::Failure)) {
                Counted::Trip => fields.next_step(terms.is_stable),
                Counted::Window { missing, outcomes } => {
                    let phase = Phase::Closed { missing, outcomes };
                    return changed(word, Fields { phase, ..fields }.packed());
                }
            }
        }
        (Phase::HalfOpen { .. }, Ending::Failure) => fields.grown(),
        (Phase::HalfOpen { successes, .. }, Ending::Neutral) => {
            let phase = Phase::HalfOpen { lease: 0, successes };
            return Some(Fields { phase, ..fields }.packed());
        }
        (Phase::HalfOpen { successes, .. }, Ending::Success) => {
            let successes = successes + 1; // OK: below `probes`, which fits four bits.
            let next = if successes < terms.probes {
                Fields { phase: Phase::HalfOpen { lease: 0, successes }, ..fields.moved() }
            } else {
                let phase = terms.rule.nothing();
                Fields { phase, step: fields.grown(), ..fields.moved() }
            };
            return Some(next.packed());
        }
    };
    let phase = Phase::Open { end: (terms.opens_until)(step) };
    Some(Fields { phase, step, ..fields.moved() }.packed())
}

/// A breaker run in `mode` from now on, closed and with nothing counted.
pub(super) const fn switched(word: u64, mode: Mode, rule: Rule) -> u64 {
    let phase = rule.nothing();
    Fields { phase, mode, step: 0, ..Fields::unpacked(word).moved() }.packed()
}

/// How the breaker is run.
pub(super) const fn mode(word: u64) -> Mode {
    Fields::unpacked(word).mode
}

/// Whether reports of calls admitted in `generation` still count.
#[inline]
pub(super) const fn counts(word: u64, of: u16) -> bool {
    generation(word) == of
}

/// Whether a success of a call admitted in `generation` leaves the breaker as it is: the common
/// case, in one look.
#[inline]
pub(super) const fn is_at_rest(word: u64, generation: u16) -> bool {
    const ANY: u64 = 3 << MODE_SHIFT | (NIBBLE as u64) << STEP_SHIFT;
    word & !ANY == (generation as u64) << GENERATION_SHIFT
}

const fn changed(old: u64, new: u64) -> Option<u64> {
    if old == new { None } else { Some(new) }
}

enum Counted {
    Trip,
    Window { missing: u8, outcomes: u32 },
}

/// The window with one more outcome in it.
const fn counted(rule: Rule, missing: u8, outcomes: u32, failed: bool) -> Counted {
    match rule {
        Rule::Consecutive { failures } => {
            let run = if failed { outcomes.saturating_add(1) } else { 0 };
            if run >= failures { Counted::Trip } else { Counted::Window { missing, outcomes: run } }
        }
        Rule::OverTime { .. } => Counted::Window { missing, outcomes },
        Rule::Rate { window, least, ppm } => {
            let mask = u32::MAX >> (32 - window as u32); // OK: window is 1 to 32.
            let outcomes = (outcomes << 1 | failed as u32) & mask;
            let missing = missing.saturating_sub(1);
            let filled = window - missing; // OK: it starts as the window and falls.
            let failures = outcomes.count_ones() as u64;
            if filled >= least && failures * 1_000_000 >= ppm as u64 * filled as u64 {
                Counted::Trip
            } else {
                Counted::Window { missing, outcomes }
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fields {
    pub(super) phase: Phase,
    pub(super) mode: Mode,
    generation: u16,
    step: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Closed { missing: u8, outcomes: u32 },
    HalfOpen { lease: u64, successes: u8 },
    Open { end: u64 },
}

const PHASE_SHIFT: u32 = 62;
const MODE_SHIFT: u32 = 60;
const GENERATION_SHIFT: u32 = 50;
const STEP_SHIFT: u32 = 46;
const SUCCESSES_SHIFT: u32 = 42;
const MISSING_SHIFT: u32 = 32;

const GENERATION_MASK: u16 = (1 << 10) - 1;
const NIBBLE: u8 = 0xf;

const fn generation(word: u64) -> u16 {
    (word >> GENERATION_SHIFT) as u16 & GENERATION_MASK
}

const fn closed_payload(missing: u8, outcomes: u32) -> u64 {
    (missing as u64) << MISSING_SHIFT | outcomes as u64
}

impl Fields {
    const fn packed(self) -> u64 {
        let (phase, payload) = match self.phase {
            Phase::Closed { missing, outcomes } => (0, closed_payload(missing, outcomes)),
            Phase::Open { end } => (1, end),
            Phase::HalfOpen { lease, successes } => {
                (2, (successes as u64) << SUCCESSES_SHIFT | lease)
            }
        };
        let mode = match self.mode {
            Mode::Normal => 0,
            Mode::Shadow => 1,
            Mode::Disabled => 2,
            Mode::ForcedOpen => 3,
        };
        phase << PHASE_SHIFT
            | mode << MODE_SHIFT
            | (self.generation as u64) << GENERATION_SHIFT
            | (self.step as u64) << STEP_SHIFT
            | payload
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "each field is cut to its width on purpose"
    )]
    pub(super) const fn unpacked(word: u64) -> Self {
        let phase = match word >> PHASE_SHIFT {
            0 => {
                let missing = (word >> MISSING_SHIFT) as u8 & 0x3f;
                Phase::Closed { missing, outcomes: word as u32 }
            }
            1 => Phase::Open { end: word & TIME_MAX },
            _ => Phase::HalfOpen {
                lease: word & TIME_MAX,
                successes: (word >> SUCCESSES_SHIFT) as u8 & NIBBLE,
            },
        };
        let mode = match word >> MODE_SHIFT & 3 {
            0 => Mode::Normal,
            1 => Mode::Shadow,
            2 => Mode::Disabled,
            _ => Mode::ForcedOpen,
        };
        Self {
            phase,
            mode,
            generation: generation(word),
            step: (word >> STEP_SHIFT) as u8 & NIBBLE,
        }
    }

    /// The slot goes to a new probe.
    const fn probe(self, lease_end: u64, successes: u8) -> (Option<u64>, Admission) {
        let phase = Phase::HalfOpen { lease: lease_end, successes };
        let probing = Self { phase, ..self.moved() };
        (Some(probing.packed()), Admission::Probe { generation: probing.generation })
    }

    /// How often the open period of a breaker that trips has grown.
    fn next_step(self, is_stable: impl FnOnce() -> bool) -> u8 {
        if is_stable() { 0 } else { self.step }
    }

    const fn moved(self) -> Self {
        Self { generation: (self.generation + 1) & GENERATION_MASK, ..self }
    }

    const fn grown(self) -> u8 {
        if self.step < NIBBLE { self.step + 1 } else { NIBBLE }
    }
}

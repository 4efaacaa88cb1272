//! The provider: a token bucket of integers that answers 429 when it is empty.

/// A token (ms): what 10 a second take to make one.
const TOKEN: u32 = 100;
const CAPACITY: u32 = 20 * TOKEN;

/// It shares no code with [`holdoff::Limiter`].
pub(crate) struct Provider {
    level: u32,
    /// When the level was that (ms).
    at: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    Accepted,
    Rejected {
        /// Whole seconds until a token is there, rounded up.
        retry_after: u32,
    },
}

impl Provider {
    pub(crate) const fn new() -> Self {
        Self { level: CAPACITY, at: 0 }
    }

    pub(crate) fn request(&mut self, now: u32) -> Verdict {
        self.level = (self.level + (now - self.at)).min(CAPACITY);
        self.at = now;
        match self.level.checked_sub(TOKEN) {
            Some(left) => {
                self.level = left;
                Verdict::Accepted
            }
            None => Verdict::Rejected { retry_after: (TOKEN - self.level).div_ceil(1_000) },
        }
    }
}

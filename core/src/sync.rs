//! The only file that names an atomic.
//!
//! Every shared thing is a [`Word`]: one 64-bit value that changes by a pure transition and a
//! compare-and-swap. Three back ends carry it:
//!
//! | target | back end |
//! |---|---|
//! | 64-bit atomics | `core::sync::atomic` |
//! | none, feature `critical-section` | a cell behind a critical section |
//! | `cfg(loom)` | loom's model-checked atomic |
//!
//! A 64-bit software atomic behind a global spin lock is deliberately not among them: an interrupt
//! that meets the lock held by the code it interrupted would wait for ever.

/// What a transition wants done with the word it looked at.
pub(crate) enum Next<R> {
    /// Leave the word alone and return.
    Keep(R),
    /// Put the new word in place of the old one and return.
    Store(u64, R),
    /// What was read beside the word is no longer current: look again.
    Reload,
}

impl Word {
    /// Applies `transition` until it keeps the word or its new word is stored.
    ///
    /// `transition` may run several times and must have no effect of its own.
    #[inline]
    pub(crate) fn update<R>(&self, mut transition: impl FnMut(u64) -> Next<R>) -> R {
        let mut current = self.load_for_update();
        loop {
            match transition(current) {
                Next::Keep(result) => return result,
                Next::Store(new, result) => match self.compare_exchange(current, new) {
                    Ok(()) => return result,
                    Err(actual) => current = actual,
                },
                Next::Reload => current = self.load_for_update(),
            }
        }
    }
}

#[cfg(all(not(loom), target_has_atomic = "64"))]
pub(crate) use native::Word;

#[cfg(loom)]
pub(crate) use model::Word;

#[cfg(all(not(loom), not(target_has_atomic = "64"), feature = "critical-section"))]
pub(crate) use critical::Word;

#[cfg(all(not(loom), not(target_has_atomic = "64"), not(feature = "critical-section")))]
compile_error!(
    "this target has no 64-bit atomics: enable holdoff's feature `critical-section` and let the \
     binary provide a critical-section implementation"
);

#[cfg(all(not(loom), target_has_atomic = "64"))]
mod native {
    use core::sync::atomic::{AtomicU64, Ordering};

    #[derive(Debug)]
    pub(crate) struct Word(AtomicU64);

    impl Word {
        pub(crate) const fn new(value: u64) -> Self {
            Self(AtomicU64::new(value))
        }

        /// Acquire: what was published before the word was stored is visible after.
        #[inline]
        pub(crate) fn load(&self) -> u64 {
            self.0.load(Ordering::Acquire)
        }

        #[inline]
        pub(super) fn load_for_update(&self) -> u64 {
            self.load()
        }

        /// Relaxed: a count publishes nothing.
        pub(crate) fn add(&self, more: u64) {
            self.0.fetch_add(more, Ordering::Relaxed);
        }

        /// Release: publishes what was stored before; acquire: for the next look on failure.
        #[inline]
        pub(crate) fn compare_exchange(&self, current: u64, new: u64) -> Result<(), u64> {
            self.0.compare_exchange(current, new, Ordering::AcqRel, Ordering::Acquire).map(|_| ())
        }
    }
}

#[cfg(loom)]
mod model {
    use loom::sync::atomic::{AtomicU64, Ordering};

    #[derive(Debug)]
    pub(crate) struct Word(AtomicU64);

    impl Word {
        pub(crate) fn new(value: u64) -> Self {
            Self(AtomicU64::new(value))
        }

        pub(crate) fn load(&self) -> u64 {
            self.0.load(Ordering::Acquire)
        }

        /// A read-modify-write, because loom explores a race against the last access only: after
        /// a plain load it would never let another thread in before the compare-and-swap.
        pub(super) fn load_for_update(&self) -> u64 {
            self.0.fetch_or(0, Ordering::AcqRel)
        }

        pub(crate) fn add(&self, more: u64) {
            self.0.fetch_add(more, Ordering::Relaxed);
        }

        pub(crate) fn compare_exchange(&self, current: u64, new: u64) -> Result<(), u64> {
            self.0.compare_exchange(current, new, Ordering::AcqRel, Ordering::Acquire).map(|_| ())
        }
    }
}

#[cfg(all(feature = "critical-section", any(not(target_has_atomic = "64"), test), not(loom)))]
mod critical {
    use core::cell::Cell;
    use critical_section::Mutex;

    // A section is entered in one place, not wherever a word is used: flash is dear here.
    #[derive(Debug)]
    pub(crate) struct Word(Mutex<Cell<u64>>);

    impl Word {
        pub(crate) const fn new(value: u64) -> Self {
            Self(Mutex::new(Cell::new(value)))
        }

        #[inline(never)]
        pub(crate) fn load(&self) -> u64 {
            critical_section::with(|section| self.0.borrow(section).get())
        }

        pub(super) fn load_for_update(&self) -> u64 {
            self.load()
        }

        #[cfg(not(target_has_atomic = "64"))]
        #[inline(never)]
        pub(crate) fn add(&self, more: u64) {
            critical_section::with(|section| {
                let word = self.0.borrow(section);
                word.set(word.get().wrapping_add(more));
            });
        }

        #[inline]
        pub(crate) fn compare_exchange(&self, current: u64, new: u64) -> Result<(), u64> {
            let found = self.exchange(current, new);
            if found == current { Ok(()) } else { Err(found) }
        }

        /// What it held; `new` is put in its place if that was `current`.
        #[inline(never)]
        fn exchange(&self, current: u64, new: u64) -> u64 {
            critical_section::with(|section| {
                let word = self.0.borrow(section);
                let found = word.get();
                if found == current {
                    word.set(new);
                }
                found
            })
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn an_update_stores_keeps_or_looks_again() {
        let word = Word::new(1);
        assert_eq!(word.update(|old| Next::Store(old + 1, old)), 1);
        assert_eq!(word.update(Next::Keep), 2);

        let mut looks = 0;
        let seen = word.update(|old| {
            looks += 1;
            if looks == 1 { Next::Reload } else { Next::Keep(old) }
        });
        assert_eq!((seen, looks), (2, 2));
    }

    #[test]
    fn a_word_changed_meanwhile_is_looked_at_again() {
        let word = Word::new(1);
        let mut seen = [0; 2];
        let mut looks = 0;
        word.update(|old| {
            seen[looks] = old;
            looks += 1;
            if looks == 1 {
                word.compare_exchange(1, 10).expect("nobody else is here");
            }
            Next::Store(old + 1, ())
        });
        assert_eq!(seen, [1, 10]);
        assert_eq!(word.load(), 11);
    }

    #[cfg(feature = "critical-section")]
    #[test]
    fn the_critical_section_word_exchanges_only_what_it_holds() {
        let word = critical::Word::new(1);
        assert_eq!(word.compare_exchange(2, 3), Err(1));
        assert_eq!(word.compare_exchange(1, 3), Ok(()));
        assert_eq!((word.load(), word.load_for_update()), (3, 3));
    }
}

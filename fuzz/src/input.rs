//! From bytes to something typed.

use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, Ordering};

use arbitrary::{Arbitrary, Unstructured};

static SHOWN: AtomicBool = AtomicBool::new(false);

/// Whether decoded inputs are printed.
#[cfg(not(fuzzing))]
pub(crate) fn show(shown: bool) {
    SHOWN.store(shown, Ordering::Relaxed);
}

/// The typed input that `data` stands for, if it is long enough.
pub(crate) fn decoded<'a, T: Arbitrary<'a> + Debug>(data: &'a [u8]) -> Option<T> {
    let input = T::arbitrary_take_rest(Unstructured::new(data)).ok()?;
    if SHOWN.load(Ordering::Relaxed) {
        println!("{input:#?}");
    }
    Some(input)
}

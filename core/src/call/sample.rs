//! A random number that is drawn where it is needed, if it is.

/// Something that gives a number uniform over all of `u64`, once.
pub(crate) trait Sample {
    fn draw(&mut self) -> u64;
}

impl<F: FnOnce() -> u64> Sample for Option<F> {
    fn draw(&mut self) -> u64 {
        self.take().map_or(0, |sample| sample())
    }
}

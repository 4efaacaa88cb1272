//! The herd experiment.
fn main() {}

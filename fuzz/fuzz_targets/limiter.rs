//! See `holdoff_fuzz::limiter`.

#![cfg_attr(fuzzing, no_main)]

holdoff_fuzz::target!(holdoff_fuzz::limiter::run);

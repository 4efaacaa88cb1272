//! See `holdoff_fuzz::breaker`.

#![cfg_attr(fuzzing, no_main)]

holdoff_fuzz::target!(holdoff_fuzz::breaker::run);

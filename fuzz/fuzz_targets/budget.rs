//! See `holdoff_fuzz::budget`.

#![cfg_attr(fuzzing, no_main)]

holdoff_fuzz::target!(holdoff_fuzz::budget::run);

//! See `holdoff_fuzz::backoff`.

#![cfg_attr(fuzzing, no_main)]

holdoff_fuzz::target!(holdoff_fuzz::backoff::run);

//! See `holdoff_fuzz::headers`.

#![cfg_attr(fuzzing, no_main)]

holdoff_fuzz::target!(holdoff_fuzz::headers::run);

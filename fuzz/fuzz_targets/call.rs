//! See `holdoff_fuzz::call`.

#![cfg_attr(fuzzing, no_main)]

holdoff_fuzz::target!(holdoff_fuzz::call::run);

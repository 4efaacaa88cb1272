//! What values take, on a 64-bit host, configuration included.

use holdoff::{Backoff, Call, CircuitBreaker, Limiter, Reconnect, RetryBudget, TickClock};

#[test]
fn nothing_is_larger_than_it_may_be() {
    for (name, size, most) in [
        ("Backoff", size_of::<Backoff>(), 64),
        ("Limiter", size_of::<Limiter>(), 32),
        ("CircuitBreaker", size_of::<CircuitBreaker>(), 48),
        ("CircuitBreaker<10>", size_of::<CircuitBreaker<10>>(), 48 + 80),
        ("Reconnect", size_of::<Reconnect>(), 64 + 48),
        ("RetryBudget", size_of::<RetryBudget>(), 24),
        ("TickClock", size_of::<TickClock>(), 24),
        ("Call", size_of::<Call<'_>>(), 176),
    ] {
        println!("{name}: {size} of at most {most} bytes");
        assert!(size <= most, "{name} has {size} bytes, more than {most}");
    }
}

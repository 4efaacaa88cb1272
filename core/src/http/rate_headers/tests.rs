use super::*;
use proptest::prelude::*;
use std::format;
use std::string::String;
use std::vec::Vec;

fn millis(headers: &[(&str, &str)], wall_now: u64) -> Option<u128> {
    let hint = rate_limit(headers.iter().copied(), Some(Duration::from_secs(wall_now)));
    assert_ne!(hint, Hint::Malformed);
    hint.delay().map(|delay| delay.as_millis())
}

#[test]
fn durations_are_read_as_go_writes_them() {
    for (value, expected) in [
        ("1s", Some((1_000_000_000, 1_000_000_000))),
        ("6m0s", Some((360_000_000_000, 1_000_000_000))),
        ("20ms", Some((20_000_000, 1_000_000))),
        ("1h0m0.5s", Some((3_600_500_000_000, 100_000_000))),
        ("2m59.56s", Some((179_560_000_000, 10_000_000))),
        ("1.5h", Some((5_400_000_000_000, 1_000_000_000))),
        ("1d", Some((86_400_000_000_000, 1_000_000_000))),
        ("7us", Some((7_000, 1_000))),
        ("7µs", Some((7_000, 1_000))),
        ("7ns", Some((7, 1))),
        ("0.4ns", Some((1, 1))),
        ("12", Some((12_000_000_000, 1_000_000_000))),
        ("0s", Some((0, 1_000_000_000))),
        ("-1s", None),
        ("1s2", None),
        ("1 s", None),
        ("s", None),
        (".5s", None),
        ("1.s", None),
        ("1y", None),
        ("", None),
    ] {
        let read = match duration(value.as_bytes()) {
            Hint::After { delay, granularity } => Some((delay.as_nanos(), granularity)),
            _ => None,
        };
        assert_eq!(read, expected, "{value}");
    }
    let endless = duration(b"99999999999999999999h").delay();
    assert_eq!(endless, Some(Duration::MAX));
}

#[test]
fn the_longest_over_what_is_exhausted_holds() {
    let openai = |requests, tokens| {
        millis(
            &[
                ("X-RateLimit-Reset-Requests", "1s"),
                ("x-ratelimit-reset-tokens", "6m0s"),
                ("x-ratelimit-remaining-tokens", tokens),
                ("x-ratelimit-remaining-requests", requests),
                ("x-ratelimit-limit-requests", "0"),
            ],
            0,
        )
    };
    assert_eq!(openai("0", "10"), Some(1_000));
    assert_eq!(openai("0", "0"), Some(360_000));
    assert_eq!(openai("3", "1"), None);
    assert_eq!(openai("", "-0"), None);

    let now = 1_738_368_000; // 2025-02-01T00:00:00Z
    let anthropic = |input, output| {
        millis(
            &[
                ("anthropic-ratelimit-input-tokens-remaining", input),
                ("anthropic-ratelimit-input-tokens-reset", "2025-02-01T00:00:20Z"),
                ("anthropic-ratelimit-output-tokens-remaining", output),
                ("anthropic-ratelimit-output-tokens-reset", "2025-02-01T00:01:00Z"),
                ("anthropic-ratelimit-requests-remaining", "0"),
                ("anthropic-ratelimit-requests-reset", "soon"),
            ],
            now,
        )
    };
    assert_eq!(anthropic("0", "1000"), Some(20_000));
    assert_eq!(anthropic("0", "0"), Some(60_000));
    assert_eq!(anthropic("8000", "1000"), None);
    let past = [
        ("anthropic-ratelimit-tokens-remaining", "0"),
        ("anthropic-ratelimit-tokens-reset", "2025-01-01T00:00:00Z"),
    ];
    let hint = rate_limit(past, Some(Duration::from_secs(now)));
    assert_eq!(hint, Hint::after(Duration::ZERO));
    assert_eq!(rate_limit(past, None), Hint::Absent);
}

#[test]
fn both_forms_of_the_draft_are_read() {
    for (value, expected) in [
        (r#""default";r=0;t=30"#, Some(30)),
        (r#""default";r=50;t=30"#, None),
        (r#""a";r=0;t=3, "b";r=0;t=9,"c";r=1;t=99"#, Some(9)),
        (r#""odd, \"name\"; r=1";t=5;r=0"#, Some(5)),
        (r#"default;r=0;t=30;pk=:cHJ1:"#, Some(30)),
        (r#""default";r=0"#, None),
        (r#""default";r=0;t=-3"#, None),
        (r#""default";r=0;t"#, None),
        (r#""default;r=0;t=30"#, None),
        ("limit=100, remaining=0, reset=30", Some(30)),
        ("limit=100;w=60, reset=30, remaining=0", Some(30)),
        ("limit=100, remaining=1, reset=30", None),
        (",,,;;;", None),
        ("", None),
    ] {
        let seconds = expected.map(|seconds: u128| seconds * 1_000);
        assert_eq!(millis(&[("RateLimit", value)], 0), seconds, "{value}");
    }
    let oldest = [("RateLimit-Remaining", "0"), ("RateLimit-Reset", "7")];
    assert_eq!(millis(&oldest, 0), Some(7_000));
    let not_a_limit = [("RateLimit-Policy", "\"a\";q=0;w=60"), ("x-ratelimit-reset", "7")];
    assert_eq!(millis(&not_a_limit, 0), None);
}

#[test]
fn of_equal_resets_the_first_says_how_fine_it_is() {
    let fine = [("x-ratelimit-remaining-tokens", "0"), ("x-ratelimit-reset-tokens", "30.0s")];
    let coarse = [("x-ratelimit-remaining-requests", "0"), ("x-ratelimit-reset-requests", "30s")];
    let field = [("RateLimit", "\"default\";r=0;t=30"), ("content-length", "0")];
    let oldest = [("RateLimit-Remaining", "0"), ("RateLimit-Reset", "30")];
    let granularity = |headers: [[(&'static str, &'static str); 2]; 2]| match rate_limit(
        headers.into_iter().flatten(),
        None,
    ) {
        Hint::After { delay, granularity } if delay.as_secs() == 30 => granularity,
        other => panic!("{other:?}"),
    };
    // In this order, whatever that of the headers: the field, OpenAI's, the oldest form.
    for (a, b, expected) in
        [(fine, field, 1_000_000_000), (fine, coarse, 1_000_000_000), (fine, oldest, 100_000_000)]
    {
        assert_eq!(granularity([a, b]), expected);
        assert_eq!(granularity([b, a]), expected);
    }
}

#[test]
fn nothing_less_than_a_whole_name_is_read() {
    for name in [
        "x-ratelimit-remaining-tokens-",
        "x-ratelimit-remaining-tokens-reset",
        "x-ratelimit-tokens-remaining",
        "x-ratelimit-reset",
        "x-ratelimit",
        "anthropic-ratelimit-remaining-tokens",
        "anthropic-ratelimit-tokens",
        "ratelimit-remaining-tokens",
        "ratelimit-tokens",
        "ratelimit-resets",
        "rate-limit-reset",
    ] {
        let reset = name.replace("remaining", "reset");
        let headers = [(name, "0"), (&reset, "30"), ("ratelimit-remaining", "0")];
        assert_eq!(rate_limit(headers, None), Hint::Absent, "{name}");
    }
}

proptest! {
    #[test]
    fn no_bytes_are_too_strange(
        value: Vec<u8>,
        name in "(x-ratelimit|anthropic-ratelimit|ratelimit)?[a-z-]{0,20}",
        text in "[0-9a-z\",;=\\\\. ]{0,60}",
        wall_now: Option<u64>,
    ) {
        let wall_now = wall_now.map(Duration::from_secs);
        for value in [value, text.clone().into_bytes()] {
            for name in [name.as_str(), "RateLimit", "x-ratelimit-reset-tokens"] {
                let headers = [(name, &value[..]), ("x-ratelimit-remaining-tokens", b"0")];
                prop_assert_ne!(rate_limit(headers, wall_now), Hint::Malformed);
            }
        }
    }

    #[test]
    fn durations_are_the_sum_of_their_parts(
        parts in prop::collection::vec((0..100_000_u64, 0..6_usize), 1..5),
    ) {
        const UNITS: [(&str, u64); 6] = [
            ("h", 3_600_000_000_000),
            ("m", 60_000_000_000),
            ("s", 1_000_000_000),
            ("ms", 1_000_000),
            ("us", 1_000),
            ("ns", 1),
        ];
        let text: String =
            parts.iter().map(|&(number, unit)| format!("{number}{}", UNITS[unit].0)).collect();
        let nanos = parts.iter().map(|&(number, unit)| number * UNITS[unit].1).sum();
        let delay = duration(text.as_bytes()).delay().unwrap_or_default();
        prop_assert_eq!(delay, Duration::from_nanos(nanos), "{}", text);
    }
}

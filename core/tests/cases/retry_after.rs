//! What the server asks for: `Retry-After` and its kin.

use core::num::NonZeroU32;
use core::time::Duration;

use holdoff::{Call, Class, Failure, Hint, HintSpread, Instant, Outcome, PolicyConfig, Step, Stop};

use crate::common::{at, millis, secs};
use crate::{Client, OWN, Response, own_backoff};

const TOO_BUSY: [u16; 4] = [429, 500, 503, 529];

/// The names of the headers that carry a delay.
const NAMES: [&str; 2] = ["Retry-After", "retry-after-ms"];

/// `values` are read as nothing at all: own backoff, whatever the status and the header.
#[track_caller]
fn assert_unreadable(client: Client, values: &[&str]) {
    for value in values {
        for status in TOO_BUSY {
            for name in NAMES {
                let response = Response::new(status).with(name, value);
                assert_eq!(response.signals(client.wall).hint, Hint::Malformed, "{name}: {value}");
                let delay = client.delay_after(&response);
                assert_eq!(delay, Some(OWN), "{status}, {name}: {value}");
            }
        }
    }
}

/// `values` are obeyed to the nanosecond, and never early whatever is drawn.
#[track_caller]
fn assert_obeyed(client: Client, values: &[(&str, Duration)]) {
    for &(value, expected) in values {
        for status in TOO_BUSY {
            let response = Response::new(status).with("Retry-After", value);
            assert_eq!(client.delay_after(&response), Some(expected), "{status}: {value}");
            let unlucky = Client { sample: u64::MAX, ..client };
            let delay = unlucky.delay_after(&response);
            // Spread over the own schedule's envelope, which is longer than a second.
            assert_eq!(delay, Some(expected + OWN), "{status}: {value}");
        }
    }
}

// C01: pydantic/pydantic-ai#7065, apify/crawlee-python#1995, 363045841/KLineChartQuant#186
#[test]
fn a_sign_makes_a_delay_unreadable() {
    let values = [
        "-1",
        "-5",
        "+5",
        "-0",
        "+0",
        "--5",
        "- 5",
        "\t-5",
        "-5 ",
        "5-",
        "-5.5",
        "+1.5",
        "\u{2212}5",
        "-18446744073709551615",
        "-99999999999999999999",
        "10, -5",
        "-5, 10",
    ];
    assert_unreadable(Client::new().at_unix_time(1_767_225_600), &values);
}

// C03: opensearch-project/data-prepper#6927, wojtekmach/req#507, microsoft/dotnet#955
#[test]
fn plain_decimals_are_obeyed_and_other_numbers_are_not() {
    let client = Client::new();
    assert_obeyed(
        client,
        &[
            ("299.997", millis(299_997)),
            ("2.0", secs(2)),
            ("0.4", millis(400)),
            ("00.40", millis(400)),
            ("5.000", secs(5)),
            ("0.000000001", Duration::from_nanos(1)),
            ("0.0000000001", Duration::from_nanos(1)), // never shorter than asked
            ("1.9999999999", secs(2)),
            ("1,5", secs(5)), // a list, or a comma for a point: 5 s is early for neither
        ],
    );
    let values = [
        "1.", ".5", ".", "1e3", "1E3", "1.5e1", "inf", "Infinity", "NaN", "nan", "0x10", "1_000",
        "1.2.3", "1 .5", "1. 5", "1.5s", "5s", "5f", "\u{665}", "\u{bd}",
    ];
    assert_unreadable(client, &values);
}

/// Numbers that do not fit 64 bits of nanoseconds, and some that fit nothing.
fn too_many_digits() -> Vec<String> {
    let huge = ["18446744073709551615", "18446744073709551616", "99999999999999999999"];
    let nines = "9".repeat(400);
    huge.map(String::from).into_iter().chain([format!("{nines}.5"), nines]).collect()
}

// C04: openai/codex#26770, getsentry/relay#992
#[test]
fn digits_too_large_for_the_type_are_longer_than_any_cap() {
    for max_hint in [secs(60), secs(300), secs(1_000_000_000)] {
        let client = Client::of(PolicyConfig::new(own_backoff()).with_max_hint(max_hint));
        let answers = NAMES.into_iter().flat_map(|name| {
            let answer = move |value| Response::new(429).with(name, value);
            too_many_digits().into_iter().map(answer)
        });
        for response in answers {
            let trace = client.call(|_| response.clone());
            assert_eq!((trace.starts.len(), trace.end), (1, Duration::ZERO), "{response:?}");
            let hint = response.signals(None).hint.delay().expect("long, not unreadable");
            assert_eq!(trace.gave_up().stop, Stop::HintTooLong { hint }, "{response:?}");
            assert!(hint > secs(1 << 53), "{response:?}");
        }
    }
    // Zeros in front are not digits too many.
    assert_obeyed(Client::new(), &[(&format!("{}5", "0".repeat(400)), secs(5))]);
}

// C04, where the cap is no cap: openai/codex#26770
#[test]
fn a_wait_that_the_clock_cannot_tell_is_never_begun() {
    let policy = PolicyConfig::new(own_backoff()).with_max_hint(Duration::MAX);
    for value in too_many_digits() {
        let trace = Client::of(policy).call(|_| Response::new(429).with("Retry-After", &value));
        assert_eq!((trace.starts.len(), trace.end), (1, Duration::ZERO), "{value}");
    }
}

// C04, for a hint that the caller found in a body: openai/codex#26770
#[test]
fn a_hint_of_any_length_is_ordinary() {
    let client = Client::new();
    for hint in [secs(100_000_000_000_000_000), secs(u64::MAX), Duration::MAX] {
        for now in [0, 1 << 63, u64::MAX - 1].map(Instant::from_nanos) {
            let mut call = Call::new(&client.policy, client.safety, now);
            assert!(matches!(call.poll(now, || 0), Step::Attempt(_)));
            let failure = Failure::throttled().with_hint(Hint::after(hint));
            call.record(now, Outcome::Failure(failure), || 0);
            let stop = call.poll(now, || u64::MAX);
            assert_eq!(stop, Step::Stop(Stop::HintTooLong { hint }));
            assert_eq!(call.retry_after(), Some(hint));
        }
    }
}

// C05: earendil-works/pi#6911, openai/openai-node#1840, openai/openai-python#3555, curl/curl#7676,
// caseyamcl/guzzle_retry_middleware#36, cenkalti/backoff#159
#[test]
fn a_longer_wait_than_we_may_make_stops_at_once_and_says_how_long() {
    let policy = PolicyConfig::new(own_backoff()).with_max_hint(secs(60)).with_deadline(secs(120));
    let client = Client::of(policy).at_unix_time(784_111_657);
    for (value, hint) in [
        ("277403", secs(277_403)),
        ("600", secs(600)),
        ("61", secs(61)),
        ("60.000000001", secs(60) + Duration::from_nanos(1)),
        ("Sun, 06 Nov 1994 09:49:37 GMT", secs(3720)),
    ] {
        for status in TOO_BUSY {
            let response = Response::new(status).with("Retry-After", value);
            let trace = client.call(|_| response.clone());
            assert_eq!((trace.starts.len(), trace.end), (1, Duration::ZERO), "{value}");
            let gave_up = trace.gave_up();
            assert_eq!(gave_up.stop, Stop::HintTooLong { hint }, "{status}: {value}");
            assert_eq!(gave_up.retry_after, Some(hint));
            assert_eq!(gave_up.last, Some(response));
        }
    }
    assert_obeyed(client, &[("60", secs(60)), ("59", secs(59))]);
}

// C05, what is left of the deadline: earendil-works/pi#6911
#[test]
fn a_hint_is_obeyed_only_if_it_ends_before_the_deadline() {
    let policy = PolicyConfig::new(own_backoff()).with_deadline(secs(120));
    let hinted = |value: &str| Response::new(429).with("Retry-After", value);
    // The first hint leaves 80 s.
    for (value, stops) in [("90", true), ("80", true), ("79.999999999", false), ("79", false)] {
        for sample in [0, 1 << 63, u64::MAX] {
            let policy = policy.with_hint_spread(HintSpread::None);
            let first = Client::of(policy).call(|n| hinted(if n == 1 { "40" } else { value }));
            assert_eq!(first.starts.len() == 2, stops, "{value}");

            // The spread is cut so that the last start is still before the deadline.
            let policy = policy.with_hint_spread(HintSpread::Envelope).with_deadline(secs(80));
            let client = Client { sample, ..Client::of(policy) };
            let delay = client.delay_after(&hinted(value));
            assert_eq!(delay.is_none(), stops, "{value}");
            assert!(delay.is_none_or(|delay| delay < secs(80)), "{value}: {delay:?}");
        }
    }
}

// C05, after the last attempt: earendil-works/pi#6911
#[test]
fn no_attempts_left_says_so_and_still_hands_on_the_hint() {
    let client = Client::of(PolicyConfig::new(own_backoff()).with_max_attempts(1));
    let gave_up = client.call(|_| Response::new(429).with("Retry-After", "277403")).gave_up();
    assert_eq!((gave_up.stop, gave_up.retry_after), (Stop::Attempts, Some(secs(277_403))));

    // A hint bypasses no cap on attempts.
    let policy = client.policy.with_max_attempts(NonZeroU32::new(3).expect("3"));
    let trace = Client { policy, ..client }.call(|_| Response::new(429).with("Retry-After", "1"));
    assert_eq!(trace.starts, [secs(0), secs(1), secs(2)]);
}

// C06: pydantic/pydantic-ai#7677, open-telemetry/opentelemetry-cpp#4186, denoland/std#7299,
// urllib3/urllib3#1896
#[test]
fn dates_of_all_three_forms_are_utc() {
    assert_obeyed(
        Client::new().at_unix_time(784_111_657),
        &[
            ("Sun, 06 Nov 1994 08:49:37 GMT", secs(120)),
            ("Sunday, 06-Nov-94 08:49:37 GMT", secs(120)),
            ("Sun Nov  6 08:49:37 1994", secs(120)),
            (" Sun, 06 Nov 1994 08:49:37 GMT\t", secs(120)),
        ],
    );
    assert_obeyed(
        Client::new().at_unix_time(1_593_120_492),
        &[("Thu, 25 Jun 2020 21:30:12 GMT", secs(120))],
    );
    // Across the ends of a day, a year and a February with 29 days.
    for (now, value) in [
        (1_735_689_599, "Wed, 01 Jan 2025 00:00:01 GMT"),
        (1_709_164_799, "Thu, 29 Feb 2024 00:00:01 GMT"),
        (1_709_251_199, "Fri Mar  1 00:00:01 2024"),
        (951_868_799, "Wednesday, 01-Mar-00 00:00:01 GMT"),
    ] {
        assert_obeyed(Client::new().at_unix_time(now), &[(value, secs(2))]);
    }
    // Year 94 is 1994, not 2094: past.
    let response = Response::new(429).with("Retry-After", "Sunday, 06-Nov-94 08:49:37 GMT");
    let client = Client::new().at_unix_time(1_767_225_600);
    assert_eq!(response.signals(client.wall).hint, Hint::after(Duration::ZERO));
    assert_eq!(client.delay_after(&response), Some(OWN));
    // Without a wall clock no date can be read.
    assert_unreadable(Client::new(), &["Sun, 06 Nov 1994 08:49:37 GMT"]);
}

// C07: curl/curl#15833, openai/openai-java#878, will-ockmore/httpx-retries#13
#[test]
fn zero_and_the_past_leave_it_to_the_own_backoff() {
    let client = Client::new().at_unix_time(1_767_225_600);
    for value in [
        "Wed, 21 Oct 2015 07:28:00 GMT",
        "Thu, 01 Jan 2026 00:00:00 GMT", // now
        "Wed, 31 Dec 2025 23:59:59 GMT",
        "Thu, 01 Jan 1970 00:00:00 GMT",
        "Wed, 31 Dec 1969 23:59:59 GMT",
        "Sat Jan  1 00:00:00 0000",
        "0",
        "000",
        "0.0",
        "0, 0",
    ] {
        for status in TOO_BUSY {
            let response = Response::new(status).with("Retry-After", value);
            let hint = response.signals(client.wall).hint;
            assert!(matches!(hint, Hint::After { delay: Duration::ZERO, .. }), "{value}: {hint:?}");
            assert_eq!(client.delay_after(&response), Some(OWN), "{status}: {value}");
        }
    }
    // Less than a second ahead is not past.
    let client = Client { wall: Some(millis(1_767_225_599_600)), ..client };
    assert_obeyed(client, &[("Thu, 01 Jan 2026 00:00:00 GMT", millis(400))]);
}

// C07, second part: TrueLayer/reqwest-middleware#155
#[test]
fn a_start_that_is_overdue_is_made_at_once() {
    let client = Client::new();
    for late in [Duration::ZERO, Duration::from_nanos(1), millis(5), secs(86_400)] {
        let mut call = Call::new(&client.policy, client.safety, Instant::EPOCH);
        assert!(matches!(call.poll(Instant::EPOCH, || 0), Step::Attempt(_)));
        call.record(Instant::EPOCH, Outcome::Failure(Failure::transient()), || 0);
        assert!(matches!(call.poll(Instant::EPOCH, || 0), Step::Backoff { .. }));
        let overdue = call.poll(at(OWN + late), || 0);
        assert!(matches!(overdue, Step::Attempt(attempt) if attempt.number == 2), "{late:?} late");
    }
}

// C08: earendil-works/pi#9724, elizaOS/eliza#27447
#[test]
fn what_cannot_be_read_is_never_zero() {
    let values = [
        "soon",
        "",
        " ",
        "\t",
        ",",
        ", ,",
        "10 , soon,",
        "10, soon",
        "10; 20",
        "10 20",
        "\"10\"",
        "Wed, 32 Oct 2015 07:28:00 GMT",
        "Wed, 21 Oct 2015 07:28:00 XYZ",
        "Wed, 21 Oct 2015 07:28:00 +0000",
        "Wed, 21 Oct 2015 07:28:00",
        "Wed, 21 Oct 2015 25:28:00 GMT",
        "Wed, 21 Oct 2026 07:28:00 GMT, Wed, 21 Oct 2026 07:28:00 GMT",
        "2015-10-21T07:28:00Z",
        "2026-01-01",
        "0x10",
        "10\0",
        "\u{a0}10",
    ];
    assert_unreadable(Client::new().at_unix_time(1_767_225_600), &values);
    let not_utf8 = Response::new(429).with("Retry-After", [0xff, b'5']);
    assert_eq!(Client::new().delay_after(&not_utf8), Some(OWN));
}

// C08, padded and repeated: aaronpowell/httpstatus#153
#[test]
fn of_repeated_hints_the_longest_that_can_be_read_holds() {
    assert_obeyed(
        Client::new(),
        &[
            (" 5 ", secs(5)),
            ("\t5", secs(5)),
            ("5\t ", secs(5)),
            ("10, 20", secs(20)),
            ("10,", secs(10)),
            ("10,,20", secs(20)),
        ],
    );
    for (lines, expected) in [
        (&["10", "20"][..], secs(20)),
        (&["20", "10"], secs(20)),
        (&["soon", "10"], secs(10)),
        (&["10", ""], secs(10)),
        (&["0", "10"], secs(10)),
        (&["10", "-30", "20", "0x40"], secs(20)),
        (&["20 ,\t10", "5"], secs(20)),
        (&["Sun, 06 Nov 1994 08:49:37 GMT", "10"], secs(120)),
        (&["soon", "0"], OWN),
        (&["soon", "later"], OWN),
    ] {
        let client = Client::new().at_unix_time(784_111_657);
        for names in [["Retry-After"; 2], ["retry-after", "RETRY-AFTER"]] {
            let names = names.into_iter().cycle();
            let response = names
                .zip(lines)
                .fold(Response::new(429), |response, (name, value)| response.with(name, value));
            assert_eq!(client.delay_after(&response), Some(expected), "{lines:?}");
        }
    }
}

// C08, the milliseconds twin, as the official LLM SDKs read it
#[test]
fn milliseconds_go_first_unless_they_say_nothing() {
    for (millis_value, plain, expected) in [
        ("1500", "60", millis(1500)),
        ("0.5", "60", Duration::from_micros(500)),
        ("0", "60", secs(60)),
        ("soon", "60", secs(60)),
        ("-1", "60", secs(60)),
        ("1500", "soon", millis(1500)),
        ("0", "0", OWN),
        ("soon", "0", OWN),
    ] {
        let both = [("retry-after-ms", millis_value), ("retry-after", plain)];
        for headers in [both, [both[1], both[0]]] {
            let response = headers
                .into_iter()
                .fold(Response::new(503), |response, (name, value)| response.with(name, value));
            let delay = Client::new().delay_after(&response);
            assert_eq!(delay, Some(expected), "{millis_value} ms, {plain} s");
        }
    }
}

// C08, what it makes of a 429, where none at all may mean a spending limit: earendil-works/pi#9724
#[test]
fn an_unreadable_hint_does_not_make_a_rate_limit_a_spending_limit() {
    let policy = PolicyConfig::llm().with_max_attempts(2);
    let client = Client { sample: u64::MAX, ..Client::of(policy) };
    for (value, attempts) in [(Some("soon"), 2), (Some("0"), 2), (Some("1"), 2), (None, 1)] {
        let plain = Response::new(429);
        let response = value.map_or(plain.clone(), |value| plain.with("Retry-After", value));
        let Outcome::Failure(failure) = response.outcome(client.statuses, None) else { panic!() };
        assert_eq!(failure.class, Class::Throttled);
        let gave_up = client.call(|_| response.clone()).gave_up();
        let stop = if attempts == 1 { Stop::Quota } else { Stop::Attempts };
        assert_eq!((gave_up.attempts, gave_up.stop), (attempts, stop), "{value:?}");
    }
}

//! What servers say about coming back, and what hostile ones say.

use core::time::Duration;
use std::time::Instant;

use holdoff_reqwest::{Policy, RequestOptions, Stop, Upstream};

use crate::server::{Reply, Server, answer};
use crate::{gave_up, get, guarded, millis, quick, secs};

/// The hint that was read; `None` if it came to our own backoff.
async fn hint(headers: &[(&str, &str)]) -> Option<Duration> {
    let server = Server::replies(vec![answer(429, headers, "")]).await;
    let response = get(&quick(), &server).await.unwrap();
    match gave_up(&response) {
        (Stop::HintTooLong { hint }, 1) => Some(hint),
        (Stop::Attempts, 3) => None,
        other => panic!("{other:?}"),
    }
}

const DATE: (&str, &str) = ("date", "Sun, 06 Nov 1994 08:47:37 GMT");

/// C03 to C08, over the wire.
#[tokio::test]
async fn hints_are_read_or_left_to_our_own_backoff() {
    let nines = "9".repeat(400);
    for (value, expected) in [
        ("5", Some(secs(5))),
        (" \t5 ", Some(secs(5))),
        ("299.997", Some(millis(299_997))),
        ("2.0", Some(secs(2))),
        ("277403", Some(secs(277_403))),
        ("10, 20", Some(secs(20))),
        ("18446744073709551615", Some(secs(u64::MAX))),
        ("99999999999999999999", Some(Duration::MAX)),
        (&nines, Some(Duration::MAX)),
        ("Sun, 06 Nov 1994 08:49:37 GMT", Some(secs(120))),
        ("Sunday, 06-Nov-94 08:49:37 GMT", Some(secs(120))),
        ("Sun Nov  6 08:49:37 1994", Some(secs(120))),
        ("Fri, 31 Dec 9999 23:59:59 GMT", Some(secs(252_618_189_142))),
        ("Wed, 21 Oct 1981 07:28:00 GMT", None),
        ("Sun, 06 Nov 1994 08:47:37 GMT", None),
        ("0", None),
        ("-1", None),
        ("+5", None),
        ("1.", None),
        (".5", None),
        ("1e3", None),
        ("inf", None),
        ("NaN", None),
        ("0x10", None),
        ("soon", None),
        ("", None),
        ("Wed, 32 Oct 2015 07:28:00 GMT", None),
        ("Wed, 21 Oct 2015 07:28:00 XYZ", None),
        ("2015-10-21T07:28:00Z", None),
    ] {
        assert_eq!(hint(&[DATE, ("retry-after", value)]).await, expected, "{value}");
    }
    assert_eq!(hint(&[("Retry-After", "10"), ("retry-after", "20")]).await, Some(secs(20)));
    // Without a date of the server's, by the wall clock.
    assert_eq!(hint(&[("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT")]).await, None);
    let year = 365 * 86_400;
    let to_9999 = hint(&[("retry-after", "Fri, 31 Dec 9999 23:59:59 GMT")]).await.unwrap();
    assert!(to_9999 > secs(7_000 * year) && to_9999 < secs(8_000 * year));
}

#[tokio::test]
async fn the_most_precise_hint_goes_first() {
    let exhausted = ("x-ratelimit-remaining-tokens", "0");
    let reset = ("x-ratelimit-reset-tokens", "6m0s");
    for (headers, expected) in [
        (&[("retry-after-ms", "1500"), ("retry-after", "7")][..], Some(millis(1_500))),
        (&[("retry-after-ms", "soon"), ("retry-after", "7")], Some(secs(7))),
        (&[exhausted, reset, ("retry-after", "7")], Some(secs(7))),
        (&[exhausted, reset], Some(secs(360))),
        (&[exhausted, reset, ("retry-after", "soon")], Some(secs(360))),
        (&[reset, ("x-ratelimit-remaining-tokens", "17")], None),
        (&[("ratelimit", r#""default";r=0;t=30"#)], Some(secs(30))),
        (
            &[
                DATE,
                ("anthropic-ratelimit-input-tokens-remaining", "0"),
                ("anthropic-ratelimit-input-tokens-reset", "1994-11-06T08:48:37Z"),
            ],
            Some(secs(60)),
        ),
    ] {
        assert_eq!(hint(headers).await, expected, "{headers:?}");
    }
}

#[tokio::test]
async fn a_hint_is_waited_for_and_never_cut_short() {
    let headers = [("retry-after", "0.2")];
    let server = Server::replies(vec![answer(429, &headers, ""), answer(200, &[], "")]).await;
    let started = Instant::now();
    let response = get(&quick(), &server).await.unwrap();
    assert_eq!(response.status(), 200);
    assert!(started.elapsed() >= millis(200));
}

/// C05: not slept, not cut short, not swapped for our own backoff.
#[tokio::test]
async fn a_hint_that_is_too_long_ends_the_call_at_once() {
    let server = Server::replies(vec![answer(429, &[("retry-after", "277403")], "")]).await;
    let started = Instant::now();
    let response = get(&quick(), &server).await.unwrap();
    assert_eq!(gave_up(&response), (Stop::HintTooLong { hint: secs(277_403) }, 1));
    assert!(started.elapsed() < secs(10));
    assert_eq!(server.received().len(), 1);

    // Allowed by itself, but not before the deadline.
    let server = Server::replies(vec![answer(429, &[("retry-after", "90")], "")]).await;
    let (guarded, started) = (guarded(Upstream::new(Policy::STANDARD)), Instant::now());
    let options = RequestOptions::new().with_deadline(secs(80));
    let request = guarded.client().get(server.url("/")).build().unwrap();
    let response = guarded.execute_with(request, &options).await.unwrap();
    assert_eq!(gave_up(&response), (Stop::HintTooLong { hint: secs(90) }, 1));
    assert!(started.elapsed() < secs(10));
}

#[tokio::test]
async fn hostile_headers_neither_panic_nor_make_anybody_wait() {
    let long = "9".repeat(64 * 1024);
    assert_eq!(hint(&[("retry-after", &long)]).await, Some(Duration::MAX));
    let lists = "1,".repeat(32 * 1024);
    assert_eq!(hint(&[("retry-after", &lists)]).await, Some(secs(1)));
    let quotes = "\"\\".repeat(32 * 1024);
    for name in ["ratelimit", "x-ratelimit-reset-tokens", "x-should-retry", "date"] {
        for value in [&long, &lists, &quotes] {
            let headers = [("x-ratelimit-remaining-tokens", "0"), (name, value)];
            let _ = hint(&headers).await;
        }
    }

    let raw = |line: &[u8]| {
        let mut bytes = b"HTTP/1.1 429 Busy\r\ncontent-length: 0\r\n".to_vec();
        bytes.extend_from_slice(line);
        bytes.extend_from_slice(b"\r\n");
        Reply::Close(bytes)
    };
    for line in [
        &b"retry-after: \xff\xfe\x80\r\nx-ratelimit-remaining-tokens: \xf0\r\n"[..],
        b"retry-after: 1\0\r\n",
        b"retry-after\0: 1\r\n",
        &b"retry-after: 600\r\n".repeat(90),
        &b"retry-after: 600\r\n".repeat(10_000),
    ] {
        let server = Server::replies(vec![raw(line)]).await;
        let started = Instant::now();
        let result = get(&quick(), &server).await;
        assert!(started.elapsed() < secs(10));
        let stop = match &result {
            Ok(response) => gave_up(response).0,
            Err(error) => error.stop(),
        };
        let is_right = matches!(stop, Stop::Attempts | Stop::Permanent | Stop::HintTooLong { .. });
        assert!(is_right, "{stop:?}");
    }
}

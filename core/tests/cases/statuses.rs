//! Which statuses are tried again.

use holdoff::http::{Statuses, method_safety};
use holdoff::{Safety, Stop};

use crate::{Client, Response};

/// How many requests a status gets that is answered to each of them.
fn requests(client: Client, response: &Response) -> usize {
    client.call(|_| response.clone()).starts.len()
}

// C51: genkit-ai/genkit-dart#355, sudoprivacy/sudocode#722, knative/specs#96,
// anomalyco/opencode#47524
#[test]
fn exactly_these_statuses_are_tried_again() {
    let client = Client::new();
    let retried = [408, 429, 500, 502, 503, 504, 520, 522, 524, 529];
    for status in 400..=u16::MAX {
        let trace = client.call(|_| Response::new(status));
        let tried = if retried.contains(&status) { 5 } else { 1 };
        assert_eq!(trace.starts.len(), tried, "{status}");
        let gave_up = trace.gave_up();
        let stop = if tried == 5 { Stop::Attempts } else { Stop::Permanent };
        assert_eq!(gave_up.stop, stop, "{status}");
        // A caller's own mistake comes back as it is.
        assert_eq!(gave_up.last, Some(Response::new(status)));
    }
    for status in (100..400).chain([0, 99]) {
        let trace = client.call(|_| Response::new(status));
        assert_eq!(trace.result, Ok(Response::new(status)));
        assert_eq!(trace.starts.len(), 1, "{status}");
    }
}

// C51, the ones that are opted in to
#[test]
fn conflict_and_too_early_are_tried_again_only_where_asked_for() {
    let tables = [
        (Statuses::HTTP, [1, 1]),
        (Statuses::HTTP.with_conflict(), [5, 1]),
        (Statuses::HTTP.with_too_early(), [1, 5]),
        (Statuses::LLM, [5, 1]),
        (Statuses::LLM.with_too_early(), [5, 5]),
    ];
    for (statuses, expected) in tables {
        let client = Client { statuses, ..Client::new() };
        let tried = [409, 425].map(|status| requests(client, &Response::new(status)));
        assert_eq!(tried, expected, "{statuses:?}");
        // The rest of the table is the same.
        for status in (400..600).filter(|status| ![409, 425].contains(status)) {
            let response = Response::new(status);
            let tried = requests(client, &response);
            assert_eq!(tried, requests(Client::new(), &response), "{statuses:?}: {status}");
        }
    }
}

// C51, for requests that are not safe to repeat: 429, 503 and 529 were surely not processed
#[test]
fn a_request_that_may_have_been_processed_is_repeated_only_if_that_is_safe() {
    for (method, safe) in [("GET", true), ("PUT", true), ("POST", false), ("PATCH", false)] {
        let safety = method_safety(method.as_bytes());
        assert_eq!(safety == Safety::Idempotent, safe, "{method}");
        let client = Client { safety, ..Client::new() };
        for status in [408, 500, 502, 504, 520, 522, 524] {
            let trace = client.call(|_| Response::new(status));
            assert_eq!(trace.starts.len(), if safe { 5 } else { 1 }, "{method}: {status}");
            let stop = if safe { Stop::Attempts } else { Stop::NotIdempotent };
            assert_eq!(trace.gave_up().stop, stop, "{method}: {status}");
        }
        for status in [429, 503, 529] {
            assert_eq!(requests(client, &Response::new(status)), 5, "{method}: {status}");
        }
    }
}

// C51, the server's own verdict: the rule of the official LLM SDKs
#[test]
fn the_server_may_overrule_the_table() {
    for (status, verdict, expected) in [
        (400, "true", 5),
        (404, " True ", 5),
        (501, "TRUE", 5),
        (503, "false", 1),
        (429, "false", 1),
        (400, "yes", 1),
        (503, "no", 5),
        (503, "", 5),
    ] {
        let response = Response::new(status).with("X-Should-Retry", verdict);
        assert_eq!(requests(Client::new(), &response), expected, "{status}: {verdict}");
    }
    // It says nothing of whether the request was processed.
    let unsafe_client = Client { safety: Safety::NonIdempotent, ..Client::new() };
    let response = Response::new(500).with("x-should-retry", "true");
    assert_eq!(requests(unsafe_client, &response), 1);
}

//! A thousand requests at once, and a server that does all the wrong things.

use core::time::Duration;
use std::collections::HashMap;
use std::sync::Arc;

use holdoff_reqwest::{Guard, Stop, Upstream};

use crate::server::{Reply, Server, answer, truncated};
use crate::{QUICK, gave_up, guarded, millis};

const CALLS: usize = 1_000;

pub(crate) fn fault(random: u32) -> Reply {
    let good = || answer(200, &[], "fine");
    match random % 16 {
        0 => Reply::Reset(Vec::new()),
        1 => Reply::Close(Vec::new()),
        2 => Reply::Close(b"HTTP/1.1 200 O".to_vec()),
        3 => Reply::Close(truncated(503)),
        4 => answer(500, &[], "oh"),
        5 => answer(503, &[("retry-after", "0.005")], ""),
        6 => answer(429, &[("retry-after-ms", "3")], r#"{"error":{"code":"slow_down"}}"#),
        7 => answer(400, &[], "your fault"),
        8 => answer(429, &[("retry-after", "99999")], ""),
        9 => Reply::Later(millis(u64::from(random % 30)), Box::new(good())),
        10 => Reply::Reset(truncated(500)),
        11 => Reply::Hang(Vec::new()),
        _ => good(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_caller_gets_exactly_one_answer() {
    let random = Arc::new(std::sync::Mutex::new(fastrand::Rng::with_seed(7)));
    let server = Server::start(move |_| fault(random.lock().unwrap().u32(..))).await;
    let policy = QUICK.with_max_attempts(5).with_attempt_timeout(Duration::from_secs(2));
    let llm = guarded(Guard::llm(Upstream::new(policy.build().unwrap())));

    let calls: Vec<_> = (0..CALLS)
        .map(|number| {
            let (llm, url) = (llm.clone(), server.url(&format!("/{number}")));
            tokio::spawn(async move {
                let request = llm.client().post(url).body(number.to_string()).build().unwrap();
                match llm.execute(request).await {
                    Ok(response) if response.status() == 200 => {
                        assert_eq!(response.text().await.unwrap(), "fine");
                        None
                    }
                    Ok(response) => Some(gave_up(&response)),
                    Err(error) => Some((error.stop(), error.attempts())),
                }
            })
        })
        .collect();

    let mut stops = HashMap::new();
    let all = async {
        for call in calls {
            if let Some((stop, attempts)) = call.await.expect("no panic") {
                assert!((1..=5).contains(&attempts));
                *stops.entry(stop.name()).or_insert(0) += 1;
                let expected =
                    matches!(stop, Stop::Attempts | Stop::HintTooLong { .. } | Stop::Permanent);
                assert!(expected, "{stop:?}");
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(120), all).await.expect("nothing hangs");
    assert!(stops["permanent"] > 10 && stops["hint_too_long"] > 10, "{stops:?}");

    let mut calls_of_key = HashMap::new();
    let mut requests_of_call = HashMap::new();
    for request in server.received() {
        let key = request.header("idempotency-key").expect("each has one").to_owned();
        let call = calls_of_key.entry(key).or_insert_with(|| request.path.clone());
        assert_eq!(*call, request.path, "one key for two calls");
        assert_eq!(request.body, request.path.as_bytes()[1..]);
        *requests_of_call.entry(request.path).or_insert(0) += 1;
    }
    assert_eq!((calls_of_key.len(), requests_of_call.len()), (CALLS, CALLS));
    assert!(requests_of_call.values().all(|&requests| requests <= 5));
}

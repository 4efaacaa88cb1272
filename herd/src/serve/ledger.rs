//! What came in and what became of it.

use core::hash::{Hash, Hasher};
use core::time::Duration;
use std::collections::{BTreeMap, HashMap};
use std::hash::DefaultHasher;
use std::io;

use serde::Serialize;

/// Arrivals that are kept. Later ones are counted and not listed.
const ARRIVALS_MAX: usize = 1_000_000;
/// A key longer than this may be a real one and is not shown in full.
const SHOWN_KEY_MAX: usize = 32;

/// What became of the requests so far, of all keys and of each one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Stats {
    /// All requests to the endpoints with a limit.
    #[serde(flatten)]
    pub total: Counts,
    /// Requests with an idempotency key that an earlier one had, too: retries, if all is well.
    pub duplicate_idempotency_keys: u64,
    /// Of those, how many were another request than the first one with the key: never right.
    pub conflicting_idempotency_keys: u64,
    /// Of the duplicates, how many were answered `ok` when one before had been, too: work done
    /// twice by a service that does not know its keys.
    pub repeated_ok: u64,
    /// The counts of each API key. Of keys longer than 32 bytes, which may be real ones, only the
    /// beginning and the end are shown; without a key it is `anonymous`.
    pub keys: BTreeMap<String, Counts>,
}

/// How many requests there were, and what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// All of them.
    pub requests: u64,
    /// Answered as they asked to be.
    pub ok: u64,
    /// Told 429, by the limit or by a scenario's `quota`.
    pub rejected: u64,
    /// Told another failure by the scenario.
    pub failed: u64,
    /// Whose connection was reset or whose stream was broken off.
    pub broken: u64,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The connection was reset or the stream broken off.
    Broken,
    /// Told another failure than 429 by the scenario.
    Failed,
    /// Answered as it asked to be.
    Ok,
    /// Told 429.
    Rejected,
}

/// A request that came in: a line of `arrivals.csv`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When, since the first one.
    pub at: Duration,
    /// The API key, shown as in [`Stats`].
    pub key: String,
    /// The method.
    pub method: String,
    /// The path, without the query.
    pub path: String,
    /// Which attempt it is, from 1, if the client says: the header `x-attempt`, as a client of
    /// `holdoff-reqwest` sends it if told to, or `x-stainless-retry-count` of the official SDKs,
    /// plus 1.
    pub attempt: Option<u32>,
    /// The status it is answered; `None` if it is answered none.
    pub status: Option<u16>,
    /// What becomes of it.
    pub outcome: Outcome,
    /// The header `idempotency-key`.
    pub idempotency_key: Option<String>,
}

/// All that is remembered.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    stats: Stats,
    arrivals: Vec<Arrival>,
    idempotency: HashMap<String, Seen>,
}

#[derive(Debug)]
struct Seen {
    request: u64,
    is_ok: bool,
}

impl Ledger {
    pub(super) fn record(&mut self, arrival: Arrival, body: &[u8]) {
        let by_key = self.stats.keys.entry(arrival.key.clone()).or_default();
        for counts in [&mut self.stats.total, by_key] {
            counts.add(arrival.outcome);
        }
        if let Some(key) = &arrival.idempotency_key {
            self.record_idempotency(key, &arrival, body);
        }
        if self.arrivals.len() < ARRIVALS_MAX {
            self.arrivals.push(arrival);
        }
    }

    fn record_idempotency(&mut self, key: &str, arrival: &Arrival, body: &[u8]) {
        let mut hasher = DefaultHasher::new();
        (&arrival.method, &arrival.path, body).hash(&mut hasher);
        let request = hasher.finish();
        let is_ok = arrival.outcome == Outcome::Ok;
        let Some(seen) = self.idempotency.get_mut(key) else {
            if self.idempotency.len() < ARRIVALS_MAX {
                self.idempotency.insert(key.to_owned(), Seen { request, is_ok });
            }
            return;
        };
        self.stats.duplicate_idempotency_keys += 1;
        self.stats.conflicting_idempotency_keys += u64::from(seen.request != request);
        self.stats.repeated_ok += u64::from(seen.is_ok && is_ok);
        seen.is_ok |= is_ok;
    }

    pub(super) const fn stats(&self) -> &Stats {
        &self.stats
    }

    pub(super) fn arrivals(&self) -> &[Arrival] {
        &self.arrivals
    }
}

impl Counts {
    const fn add(&mut self, outcome: Outcome) {
        self.requests += 1;
        match outcome {
            Outcome::Broken => self.broken += 1,
            Outcome::Failed => self.failed += 1,
            Outcome::Ok => self.ok += 1,
            Outcome::Rejected => self.rejected += 1,
        }
    }
}

/// The arrivals as CSV, with a header.
pub(super) fn csv(arrivals: &[Arrival]) -> io::Result<Vec<u8>> {
    #[derive(Serialize)]
    struct Line<'a> {
        t_s: String,
        key: &'a str,
        method: &'a str,
        path: &'a str,
        attempt: Option<u32>,
        status: Option<u16>,
        outcome: Outcome,
        idempotency_key: Option<&'a str>,
    }

    let mut writer = csv::WriterBuilder::new().has_headers(false).from_writer(Vec::new());
    writer.write_record([
        "t_s",
        "key",
        "method",
        "path",
        "attempt",
        "status",
        "outcome",
        "idempotency_key",
    ])?;
    for arrival in arrivals {
        writer.serialize(Line {
            t_s: format!("{}.{:09}", arrival.at.as_secs(), arrival.at.subsec_nanos()),
            key: &arrival.key,
            method: &arrival.method,
            path: &arrival.path,
            attempt: arrival.attempt,
            status: arrival.status,
            outcome: arrival.outcome,
            idempotency_key: arrival.idempotency_key.as_deref(),
        })?;
    }
    writer.into_inner().map_err(csv::IntoInnerError::into_error)
}

/// An API key as it is shown.
pub(super) fn shown(key: &str) -> String {
    if key.len() <= SHOWN_KEY_MAX {
        return key.to_owned();
    }
    let end = key.char_indices().rev().nth(3).map_or(key.len(), |(at, _)| at);
    let start: String = key.chars().take(8).collect();
    format!("{start}…{}", key.get(end..).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(outcome: Outcome, idempotency_key: Option<&str>) -> Arrival {
        Arrival {
            at: Duration::from_millis(1_500),
            key: "k".to_owned(),
            method: "POST".to_owned(),
            path: "/a,b".to_owned(),
            attempt: Some(2),
            status: (outcome != Outcome::Broken).then_some(200),
            outcome,
            idempotency_key: idempotency_key.map(str::to_owned),
        }
    }

    #[test]
    fn a_repeated_idempotency_key_is_a_duplicate_and_another_body_a_conflict() {
        let mut ledger = Ledger::default();
        for (outcome, key, body) in [
            (Outcome::Rejected, Some("a"), "x"),
            (Outcome::Ok, Some("a"), "x"),
            (Outcome::Ok, Some("a"), "x"),
            (Outcome::Failed, Some("a"), "y"),
            (Outcome::Ok, Some("b"), "x"),
            (Outcome::Broken, None, "x"),
        ] {
            ledger.record(arrival(outcome, key), body.as_bytes());
        }
        let counts = Counts { requests: 6, ok: 3, rejected: 1, failed: 1, broken: 1 };
        let stats = ledger.stats();
        assert_eq!(stats.total, counts);
        assert_eq!(stats.keys["k"], counts);
        assert_eq!(stats.duplicate_idempotency_keys, 3);
        assert_eq!(stats.conflicting_idempotency_keys, 1);
        assert_eq!(stats.repeated_ok, 1);
    }

    #[test]
    fn arrivals_are_lines_of_csv() {
        let lines = csv(&[arrival(Outcome::Ok, Some("i")), arrival(Outcome::Broken, None)]);
        assert_eq!(
            String::from_utf8(lines.expect("CSV")).expect("UTF-8"),
            "t_s,key,method,path,attempt,status,outcome,idempotency_key\n\
             1.500000000,k,POST,\"/a,b\",2,200,ok,i\n\
             1.500000000,k,POST,\"/a,b\",2,,broken,\n"
        );
        assert!(csv(&[]).expect("CSV").starts_with(b"t_s,"));
    }

    #[test]
    fn a_key_that_may_be_real_is_not_shown() {
        assert_eq!(shown("test-key"), "test-key");
        assert_eq!(shown("sk-ant-api03-0123456789-0123456789-wxyz"), "sk-ant-a…wxyz");
        assert_eq!(shown(&"é".repeat(40)), "éééééééé…éééé");
    }
}

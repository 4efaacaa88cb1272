//! `herd probes` as a user meets it.

mod common;

use std::io;

use serde_json::{Value, json};

use common::{herd, output, printed};

/// Enough to see something, quick enough to do often.
const SMALL: [&str; 5] = ["probes", "--seeds", "20", "--calls", "1000"];

/// The cells of each row that are not empty.
fn rows(table: &str) -> Vec<Vec<String>> {
    let lines = table.lines().filter(|line| line.starts_with(' '));
    let cells = |line: &str| -> Vec<String> {
        let cells = line.split("  ").map(str::trim).filter(|cell| !cell.is_empty());
        cells.map(str::to_owned).collect()
    };
    lines.map(cells).collect()
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

#[test]
fn the_table_has_ours_beside_what_was_published() {
    let table = printed(["probes"]);
    let rows = rows(&table);
    let has = |row: &[&str]| {
        let is_there = rows.iter().any(|there| there == row);
        assert!(is_there, "no {row:?} in {table}");
    };
    has(&["probe", "figure", "published broken", "published right", "ours"]);
    has(&["still down", "calls that reach the service", "50", "1", "1"]);
    has(&["calls that fail fast", "0", "49", "49"]);
    has(&["told a time to come back", "–", "–", "49"]);
    has(&["recovered", "successes until it closes", "20", "1", "1"]);
    has(&["what is retried", "attempts at 400", "–", "1", "1: the failure is permanent"]);
    has(&["attempts at 400 with a fallback", "2", "1", "1: the failure is permanent"]);
    has(&["attempts at 408", "1", "3", "3: no attempts left"]);
    has(&["attempts at 429 with a hint", "3", "3", "3: no attempts left"]);
    has(&["attempts at 429 without a hint", "3", "1", "1: a quota is used up"]);
    has(&["attempts at 529", "1", "3", "3: no attempts left"]);
    has(&["attempts at connection reset", "–", "3", "3: no attempts left"]);
    has(&["attempts at own error", "3", "1", "1: the failure is permanent"]);
    has(&["errors that come back untouched", "–", "19", "19 of 19"]);
    let flaky = |figure: &str| -> &[String] {
        let row = rows.iter().find(|row| row.iter().any(|cell| cell == figure));
        let row = row.unwrap_or_else(|| panic!("no {figure} in {table}"));
        &row[row.len() - 3..]
    };
    assert_eq!(flaky("state at the end")[..2], ["half-open", "closed"]);
    assert_eq!(flaky("failures")[..2], ["–", "284"]);
    assert!(flaky("runs with a trip")[2].ends_with(" of 200"), "{table}");
    assert!(!table.contains('\u{1b}'), "colours in {table}");
    assert!(table.lines().all(|line| line.chars().count() <= 120), "too wide: {table}");
    assert!(!table.contains("no published figures"), "{table}");

    let other = printed(["probes", "--seeds", "1", "--calls", "10"]);
    assert!(other.contains("1 run of 10 calls"), "{other}");
    assert!(other.contains("no published figures of the flaky service"), "{other}");
    assert!(!other.contains("284"), "{other}");
}

#[test]
fn json_has_exactly_the_documented_members() {
    let json = printed(SMALL.into_iter().chain(["--format", "json"]));
    let probes: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(keys(&probes), ["flaky", "recovered", "retried", "still_down"]);
    assert_eq!(
        probes["still_down"],
        json!({
            "calls": 50,
            "reached": 1,
            "failed_fast": 49,
            "with_time_to_come_back": 49,
            "published": {
                "broken": { "reached": 50, "failed_fast": 0 },
                "right": { "reached": 1, "failed_fast": 49 },
            },
        })
    );
    assert_eq!(
        probes["recovered"],
        json!({
            "successes_to_close": 1,
            "published": {
                "broken": { "successes_to_close": 20 },
                "right": { "successes_to_close": 1 },
            },
        })
    );

    let flaky = &probes["flaky"];
    let members =
        ["calls", "ends", "failing_percent", "failures", "published", "refused", "seeds", "trips"];
    assert_eq!(keys(flaky), members);
    let sizes = (&flaky["calls"], &flaky["seeds"], &flaky["failing_percent"]);
    assert_eq!(sizes, (&json!(1000), &json!(20), &json!(30)));
    assert_eq!(keys(&flaky["ends"]), ["closed", "half_open", "open"]);
    assert_eq!(flaky["ends"]["half_open"], 0);
    for measure in ["failures", "refused"] {
        assert_eq!(keys(&flaky[measure]), ["median", "p5", "p95"]);
    }
    let trips = &flaky["trips"];
    let members = ["at_a_run_of_five", "max", "median", "runs_of_five", "seeds", "total"];
    assert_eq!(keys(trips), members);
    assert_eq!(trips["at_a_run_of_five"], trips["total"]);
    assert_eq!(trips["runs_of_five"], trips["total"]);
    assert_eq!(
        flaky["published"],
        json!({
            "broken": { "state": "half-open", "failures": null, "trips": null },
            "right": { "state": "closed", "failures": 284, "trips": 0 },
        })
    );

    let retried = probes["retried"].as_array().expect("an array");
    assert_eq!(retried.len(), 19);
    for row in retried {
        let members = ["attempts", "outcome", "published_broken", "right", "stop", "untouched"];
        assert_eq!(keys(row), members);
        assert_eq!(row["attempts"], row["right"], "{row}");
        assert_eq!(row["untouched"], true, "{row}");
    }
    assert_eq!(
        retried[1],
        json!({
            "outcome": "400 with a fallback",
            "attempts": 1,
            "stop": "the failure is permanent",
            "untouched": true,
            "published_broken": 2,
            "right": 1,
        })
    );

    let other = printed(["probes", "--seeds", "1", "--calls", "999", "--format", "json"]);
    let other: Value = serde_json::from_str(&other).expect("JSON");
    assert!(other["flaky"]["published"].is_null(), "{other}");
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
    for format in ["table", "json"] {
        let printed = |seed| printed(SMALL.into_iter().chain(["--format", format, "--seed", seed]));
        let first = printed("1");
        for _ in 0..5 {
            assert_eq!(first, printed("1"));
        }
        assert_ne!(first, printed("2"));
    }
}

#[test]
fn bad_input_is_one_line_that_names_the_flag_and_what_is_allowed() {
    let whole = |flag, max| [flag, " 1 to", max];
    let seed = ["--seed", " 0 to", "18446744073709551615"];
    let cases: &[(&[&str], [&str; 3])] = &[
        (&["--calls", "0"], whole("--calls", "1000000")),
        (&["--calls", "1000001"], whole("--calls", "1000000")),
        (&["--calls", "-1"], whole("--calls", "1000000")),
        (&["--calls", "1e3"], whole("--calls", "1000000")),
        (&["--calls", ""], whole("--calls", "1000000")),
        (&["--seeds", "0"], whole("--seeds", "1000000")),
        (&["--seeds", "1000001"], whole("--seeds", "1000000")),
        (&["--seeds", "NaN"], whole("--seeds", "1000000")),
        (&["--seeds", "1\n2"], whole("--seeds", "1000000")),
        (&["--seed", "-1"], seed),
        (&["--seed", "18446744073709551616"], seed),
        (&["--format", "xml"], ["--format", "table", "json"]),
        (&["--format"], ["--format", "table", "json"]),
        (&["--calls"], ["--calls", "needs a value", "--help"]),
        (&["--runs", "2"], ["--runs", "no command or flag", "--help"]),
        (&["probes"], ["probes", "no command or flag", "--help"]),
        (&["--seed", "1", "--seed", "2"], ["--seed", "multiple times", "--help"]),
    ];
    for (arguments, expected) in cases {
        let output = output(["probes"].into_iter().chain(arguments.iter().copied()));
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}: {output:?}");
        assert_eq!(stderr.lines().count(), 1, "{arguments:?}: {stderr}");
        for part in expected {
            assert!(stderr.contains(part), "{arguments:?}: no {part:?} in {stderr}");
        }
    }
}

#[test]
fn help_is_no_error() {
    assert!(printed(["--help"]).contains("probes"));
    let help = printed(["probes", "--help"]);
    for flag in ["--seed <", "--seeds", "--calls", "--format", "[default: 200]"] {
        assert!(help.contains(flag), "no {flag} in {help}");
    }
}

#[test]
fn a_reader_who_has_seen_enough_is_no_error() {
    for format in ["table", "json"] {
        let (reader, writer) = io::pipe().expect("a pipe");
        drop(reader);
        let arguments = SMALL.into_iter().chain(["--format", format]);
        let output = herd(arguments).stdout(writer).output().expect("herd starts");
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    }
}

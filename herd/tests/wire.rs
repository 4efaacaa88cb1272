//! The experiment over real HTTP, as a user runs it. How close it comes to virtual time is a matter
//! of the machine and checked in CI; this is what holds on any.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use common::{herd, output, printed};

const QUICK: [&str; 7] = ["run", "--wire", "--clients", "30", "--burst", "10", "--rate=50"];

fn path(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

#[test]
fn figures_and_files_tell_of_the_same_requests() {
    let directory = tempfile::tempdir().expect("a directory");
    let more = ["--strategy", "none,anthropic-sdk,limiter", "--latency-ms", "20", "--format"];
    let arguments = QUICK.into_iter().chain(more).chain(["json", "--out", path(directory.path())]);
    let rows: Value = serde_json::from_str(&printed(arguments)).expect("JSON");
    let lines = |name: &str| -> Vec<Vec<String>> {
        let text = fs::read_to_string(directory.path().join(name)).expect("a file");
        text.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect()
    };
    let (arrivals, results) = (lines("arrivals.csv"), lines("results.csv"));

    for row in rows.as_array().expect("an array") {
        let strategy = row["strategy"].as_str().expect("a name");
        assert_eq!(row["runs"], 1, "one is the default");
        let figure = |name: &str| row[name]["median"].as_f64().expect("a number");
        let is = |name: &str, count: usize| {
            assert_eq!(figure(name), count as f64, "{strategy}: {name}");
        };
        let mine = |line: &&Vec<String>| line[0] == strategy;
        let arrivals: Vec<_> = arrivals.iter().filter(mine).collect();
        let results: Vec<_> = results.iter().filter(mine).collect();
        is("requests", arrivals.len());
        assert_eq!(results.len(), 30, "{strategy}");
        let rejected = arrivals.iter().filter(|line| line[5] == "429").count();
        is("rejected", rejected);
        let ok = results.iter().filter(|line| line[3] == "true").count();
        is("ok", ok);
        assert_eq!(ok + rejected, arrivals.len(), "{strategy}");
        assert!(ok >= 10, "{strategy}: the burst is there from the start");
        assert!(arrivals.is_sorted_by_key(|line| line[2].parse().unwrap_or(f64::NAN)));

        let mut attempts: BTreeMap<&str, u32> = BTreeMap::new();
        for line in arrivals {
            let attempt = attempts.entry(&line[3]).or_default();
            *attempt += 1;
            assert_eq!(line[4], attempt.to_string(), "{strategy}: {line:?}");
        }
        for line in results {
            assert_eq!(line[4], attempts[line[2].as_str()].to_string(), "{strategy}: {line:?}");
            let done: f64 = line[5].parse().expect("seconds");
            assert!(done >= 0.02, "{strategy}: an answer before the round trip: {line:?}");
        }
    }
    let limiter = &rows[2];
    assert_eq!(limiter["ok"]["median"], 30.0);
    assert!(limiter["last_s"]["median"].as_f64().expect("a number") >= 0.4, "{limiter}");
}

#[test]
fn the_table_says_that_time_was_real() {
    let table = printed(QUICK.into_iter().chain(["--strategy", "none", "--runs", "2"]));
    assert!(table.contains(" 2 runs over HTTP in real time, seed 1."), "{table}");
}

#[test]
fn what_takes_virtual_time_is_refused() {
    for (arguments, expected) in [
        (&["--clients", "1001"][..], ["--clients", "1000", "--wire"]),
        (&["--rate", "0.01"], ["--rate", "an hour", "--wire"]),
        (&["--burst", "4294967295", "--rate", "1"], ["--burst", "--rate", "--wire"]),
    ] {
        let output = output(["run", "--wire"].into_iter().chain(arguments.iter().copied()));
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        for part in expected {
            assert!(stderr.contains(part), "{arguments:?}: no {part:?} in {stderr}");
        }
    }
}

#[cfg(unix)]
#[test]
fn told_to_stop_it_leaves_nothing_behind() {
    let parent = tempfile::tempdir().expect("a directory");
    let out = parent.path().join("out");
    // As much as fills a buffer of the file, and then a minute.
    let long = ["run", "--wire", "--clients", "400", "--rate", "5", "--strategy", "none,limiter"];
    let child = herd(long.into_iter().chain(["--out", path(&out)]))
        .stderr(Stdio::piped())
        .spawn()
        .expect("herd starts");
    let has_begun = || {
        fs::read_dir(&out).into_iter().flatten().flatten().any(|staging| {
            fs::metadata(staging.path().join("arrivals.csv")).is_ok_and(|file| file.len() > 0)
        })
    };
    while !has_begun() {
        std::thread::yield_now();
    }
    let pid = child.id().to_string();
    let killed = Command::new("kill").args(["-s", "INT", &pid]).status().expect("kill starts");
    assert!(killed.success());
    let output = child.wait_with_output().expect("herd ends");
    assert_eq!(output.status.code(), Some(130));
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said, "herd: interrupted; nothing was written to --out\n");
    assert_eq!(fs::read_dir(parent.path()).expect("a directory").count(), 0);
}

//! The command as a user meets it.

mod common;

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use common::{herd, output, printed};

/// Enough to see something, quick enough to do often.
const SMALL: [&str; 4] = ["--runs", "2", "--clients", "30"];

fn path(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// The names in a directory, sorted.
fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("a directory");
    let mut names: Vec<_> = entries
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
        .collect();
    names.sort_unstable();
    names
}

#[test]
fn bad_input_is_one_line_that_names_the_flag_and_what_is_allowed() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("file");
    fs::write(&file, "kept").expect("a file");
    let (below_file, file) = (file.join("below"), file.as_path());

    let rate = ["--rate", "0.000001", "1000000"];
    let whole = |flag, max| [flag, " 1 to", max];
    let strategies = ["--strategy", "none, llm-retry-3", "holdoff"];
    let out = ["--out", "directory", "written"];
    let cases: &[(&[&str], [&str; 3])] = &[
        (&["--rate", "0"], rate),
        (&["--rate", "0.0000"], rate),
        (&["--rate", "NaN"], rate),
        (&["--rate", "inf"], rate),
        (&["--rate", "-inf"], rate),
        (&["--rate", "-1"], rate),
        (&["--rate=-1"], rate),
        (&["--rate", "1e3"], rate),
        (&["--rate", "1000000.1"], rate),
        (&["--rate", "0.0000001"], rate),
        (&["--rate", "99999999999999999999999999"], rate),
        (&["--rate", ""], rate),
        (&["--rate", "1\n\n2"], rate),
        (&["run", "--rate", "0"], rate),
        (&["--burst", "0"], whole("--burst", "4294967295")),
        (&["--burst", "4294967296"], whole("--burst", "4294967295")),
        (&["--burst", "NaN"], whole("--burst", "4294967295")),
        (&["--burst", "1.5"], whole("--burst", "4294967295")),
        (&["--clients", "0"], whole("--clients", "10000000")),
        (&["--clients", "-1"], whole("--clients", "10000000")),
        (&["--clients", "10000001"], whole("--clients", "10000000")),
        (&["--clients", "NaN"], whole("--clients", "10000000")),
        (&["--clients", "+5"], whole("--clients", "10000000")),
        (&["--runs", "0"], whole("--runs", "1000000")),
        (&["--runs", "1000001"], whole("--runs", "1000000")),
        (&["--runs", "NaN"], whole("--runs", "1000000")),
        (&["--seed", "-1"], ["--seed", "0", "18446744073709551615"]),
        (&["--seed", "18446744073709551616"], ["--seed", "0", "18446744073709551615"]),
        (&["--latency-ms", "-1"], ["--latency-ms", "0", "3600000"]),
        (&["--latency-ms", "0.5"], ["--latency-ms", "0", "3600000"]),
        (&["--latency-ms", "18446744073709551615"], ["--latency-ms", "0", "3600000"]),
        (&["--strategy", "frobnicate"], strategies),
        (&["--strategy", "none,frobnicate"], strategies),
        (&["--strategy", "none,"], strategies),
        (&["--strategy", ""], strategies),
        (&["--strategy", "None"], strategies),
        (&["--format", "xml"], ["--format", "table", "json"]),
        (&["--format", ""], ["--format", "table", "json"]),
        (&["--format", "a\nb"], ["--format", "table", "json"]),
        (&["--out", path(file)], out),
        (&["--out", path(&below_file)], out),
        (&["--out", "/dev/null/herd"], out),
        // Each fine by itself.
        (&["--burst", "4294967295"], ["--burst", "--rate", "limiter"]),
        (&["--burst", "40", "--rate", "0.000001"], ["--burst", "--rate", "limiter"]),
        (&["--clients", "10000", "--rate", "0.000001"], ["--clients", "--rate", "100 years"]),
        // Not understood at all.
        (&["--rate"], ["--rate", "needs a value", "--help"]),
        (&["--format"], ["--format", "table", "json"]),
        (&["--out"], ["--out", "needs a value", "--help"]),
        (&["--frobnicate"], ["--frobnicate", "no command or flag", "--help"]),
        (&["frobnicate"], ["frobnicate", "no command or flag", "--help"]),
        (&["run", "run"], ["run", "no command or flag", "--help"]),
        (&["--runs", "1", "--runs", "2"], ["--runs", "multiple times", "--help"]),
        (&["--runs", "1", "run"], ["run", "subcommand", "--help"]),
    ];
    let new = directory.path().join("new");
    for (arguments, expected) in cases {
        // Whatever is wrong, nothing is begun in the directory asked for.
        let ends_in_value = arguments.last().is_some_and(|last| !last.starts_with("--"));
        let mut arguments = arguments.to_vec();
        if ends_in_value && !arguments.contains(&"--out") {
            arguments.extend(["--out", path(&new)]);
        }
        let output = output(arguments.iter().copied());
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}: {output:?}");
        assert_eq!(stderr.lines().count(), 1, "{arguments:?}: {stderr}");
        for part in expected {
            assert!(stderr.contains(part), "{arguments:?}: no {part:?} in {stderr}");
        }
        assert_eq!(names(directory.path()), ["file"], "{arguments:?}");
        assert_eq!(fs::read_to_string(file).expect("still there"), "kept", "{arguments:?}");
    }
}

#[test]
fn run_is_what_herd_does_without_a_command() {
    let with = printed(["run"].into_iter().chain(SMALL));
    let without = printed(SMALL);
    assert_eq!(with, without);
    assert!(with.contains("limiter"), "{with}");
}

#[test]
fn help_and_version_are_no_errors() {
    let help = printed(["--help"]);
    for flag in ["run", "--runs", "--strategy", "llm-retry-8", "--latency-ms", "--out"] {
        assert!(help.contains(flag), "no {flag} in {help}");
    }
    assert!(printed(["run", "--help"]).contains("--rate"));
    assert_eq!(printed(["--version"]), concat!("herd ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn a_reader_who_has_seen_enough_is_no_error() {
    for arguments in [&["--help"][..], &["--version"], &SMALL, &["--runs", "1", "--format", "json"]]
    {
        let (reader, writer) = io::pipe().expect("a pipe");
        drop(reader);
        let output = herd(arguments.iter().copied()).stdout(writer).output().expect("herd starts");
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{arguments:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_reported_in_one_line() {
    let full = fs::File::options().write(true).open("/dev/full").expect("Linux has it");
    let output = herd(SMALL).stdout(full).output().expect("herd starts");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr).lines().count(), 1, "{output:?}");
}

#[test]
fn the_table_has_a_row_per_strategy_and_the_published_figures_below() {
    let table = printed(["--runs", "1"]);
    let rows: Vec<Vec<&str>> =
        table.lines().map(|line| line.split_whitespace().collect()).collect();
    let limiter = rows.iter().position(|row| row.first() == Some(&"limiter")).expect("a row");
    assert_eq!(rows[limiter], ["limiter", "100", "100", "0", "1.00", "8.0", "7.6"]);
    assert_eq!(rows[limiter + 1], ["published", "100", "100", "0", "1.00", "8.0", "–"]);
    assert!(table.contains("= 8.0 s"), "no floor in {table}");
    assert!(!table.contains('\u{1b}'), "colours in {table}");
    assert!(table.lines().all(|line| line.chars().count() <= 120), "too wide: {table}");

    let other = printed(SMALL);
    assert!(!other.contains("\n   published"), "{other}");
    assert!(other.contains("no published figures"), "{other}");
}

#[test]
fn json_has_exactly_the_documented_members() {
    let json = printed(["--runs", "3", "--format", "json"]);
    let rows: Value = serde_json::from_str(&json).expect("JSON");
    let rows = rows.as_array().expect("an array");
    let keys = |value: &Value| -> Vec<String> {
        value.as_object().expect("an object").keys().cloned().collect()
    };
    let ids: Vec<_> = rows.iter().map(|row| row["strategy"].as_str().expect("a name")).collect();
    assert_eq!(
        ids,
        [
            "none",
            "llm-retry-3",
            "anthropic-sdk",
            "llm-retry-8",
            "full-jitter",
            "retry-after",
            "limiter",
            "holdoff"
        ]
    );
    for row in rows {
        assert_eq!(
            keys(row),
            [
                "floor_s",
                "last_s",
                "ok",
                "p95_s",
                "published",
                "rejected",
                "requests",
                "runs",
                "strategy"
            ]
        );
        assert_eq!(row["runs"], 3);
        assert_eq!(row["floor_s"], 8.0);
        for measure in ["ok", "requests", "rejected", "last_s", "p95_s"] {
            assert_eq!(keys(&row[measure]), ["median", "p5", "p95"]);
            assert!(row[measure].as_object().expect("one").values().all(Value::is_number));
        }
        if row["strategy"] == "holdoff" {
            assert!(row["published"].is_null());
        } else {
            let figures = ["last_s", "ok", "p95_s", "rejected", "requests"];
            assert_eq!(keys(&row["published"]), figures);
        }
    }
    assert_eq!(rows[3]["published"]["requests"], 375);
    assert_eq!(rows[3]["published"]["rejected"], Value::Null);
    assert_eq!(rows[6]["last_s"]["median"], 8.0);

    let other = printed(["--runs", "1", "--format", "json", "--burst", "21"]);
    let other: Value = serde_json::from_str(&other).expect("JSON");
    assert!(other.as_array().expect("an array").iter().all(|row| row["published"].is_null()));
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
    let directory = tempfile::tempdir().expect("a directory");
    let all = |name: &str, seed| {
        let out = directory.path().join(name);
        let printed = printed(["--runs", "3", "--seed", seed, "--out", path(&out)]);
        let contents = names(&out).into_iter().map(|name| {
            let text = fs::read_to_string(out.join(&name)).expect("a file");
            (name, text)
        });
        (printed, contents.collect::<Vec<_>>())
    };
    let (first, again, other) = (all("first", "1"), all("again", "1"), all("other", "2"));
    assert!(first == again, "the same seed gave something else");
    assert_ne!(first.0, other.0);
    assert!(first.1 != other.1, "another seed gave the same files");
}

#[test]
fn files_tell_what_happened() {
    let directory = tempfile::tempdir().expect("a directory");
    // A directory inside one that does not exist, and once more over what is there.
    let out = directory.path().join("a").join("b");
    for _ in 0..2 {
        printed(["--runs", "2", "--strategy", "limiter,none", "--out", path(&out)]);
        assert_eq!(
            names(&out),
            ["arrivals-limiter.svg", "arrivals-none.svg", "arrivals.csv", "results.csv"]
        );
    }

    let lines = |name: &str| -> Vec<String> {
        let text = fs::read_to_string(out.join(name)).expect("a file");
        text.lines().map(str::to_owned).collect()
    };
    let arrivals = lines("arrivals.csv");
    assert_eq!(arrivals.len(), 1 + 2 * (100 + 100));
    assert_eq!(arrivals[0], "strategy,run,t_s,client,attempt,status");
    assert_eq!(arrivals[1], "none,0,0.000000000,0,1,200");
    assert_eq!(arrivals[21], "none,0,0.000000000,20,1,429");
    assert_eq!(arrivals[400], "limiter,1,8.000000000,99,1,200");
    let results = lines("results.csv");
    assert_eq!(results.len(), 1 + 2 * (100 + 100));
    assert_eq!(results[0], "strategy,run,client,ok,attempts,done_s");
    assert_eq!(results[1], "none,0,0,true,1,0.000000000");
    assert_eq!(results[100], "none,0,99,false,1,0.000000000");
    assert_eq!(results[400], "limiter,1,99,true,1,8.000000000");

    for strategy in ["limiter", "none"] {
        let svg = lines(&format!("arrivals-{strategy}.svg")).join("\n");
        assert!(svg.starts_with("<svg"), "{svg}");
        assert!(svg.trim_end().ends_with("</svg>"), "{svg}");
        for text in [strategy, "accepted", "rejected", "time (s)", "requests per 100 ms"] {
            assert!(svg.contains(text), "no {text} in {svg}");
        }
    }
}

#[test]
fn a_file_that_cannot_be_replaced_is_found_before_anything_is_written() {
    let directory = tempfile::tempdir().expect("a directory");
    fs::create_dir(directory.path().join("results.csv")).expect("a directory");
    let output = output(SMALL.into_iter().chain(["--out", path(directory.path())]));
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("--out"), "{output:?}");
    assert_eq!(names(directory.path()), ["results.csv"]);
}

#[test]
fn pictures_of_an_earlier_run_do_not_stay_beside_other_figures() {
    let directory = tempfile::tempdir().expect("a directory");
    let out = ["--out", path(directory.path()), "--strategy"];
    fs::write(directory.path().join("notes.txt"), "mine").expect("a file");
    printed(SMALL.into_iter().chain(out).chain(["none,limiter"]));
    printed(SMALL.into_iter().chain(out).chain(["none"]));
    let expected = ["arrivals-none.svg", "arrivals.csv", "notes.txt", "results.csv"];
    assert_eq!(names(directory.path()), expected);
}

#[cfg(unix)]
#[test]
fn told_to_stop_it_leaves_nothing_behind() {
    let parent = tempfile::tempdir().expect("a directory");
    let out = parent.path().join("out");
    // Longer than it takes to notice that it has begun.
    let long = ["--runs", "1000000", "--out", path(&out)];
    let child = herd(long).stderr(Stdio::piped()).spawn().expect("herd starts");
    // Lines in the file mean that runs have begun, and with them the watch for signals.
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
    assert_eq!(names(parent.path()), [""; 0]);
}

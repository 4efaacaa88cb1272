//! `herd serve` as a user meets it.

mod common;
mod served;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use holdoff_herd::serve::scenario::Scenario;

use common::{herd, output, printed};
use served::client;

/// A provider as a process, killed if a test ends before it.
struct Serving {
    child: Child,
    url: String,
}

impl Serving {
    fn start(arguments: &[&str]) -> Self {
        let arguments = ["serve"].into_iter().chain(arguments.iter().copied());
        let mut child = herd(arguments).stdout(Stdio::piped()).spawn().expect("herd starts");
        let mut url = String::new();
        let stdout = child.stdout.as_mut().expect("piped");
        BufReader::new(stdout).read_line(&mut url).expect("a line");
        Self { child, url: url.trim_end().to_owned() }
    }

    fn tell(&self, signal: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().expect("kill runs").success());
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn told_to_stop_it_finishes_what_is_in_flight_and_ends_well() {
    for signal in ["-INT", "-TERM"] {
        let mut serving = Serving::start(&["--latency-ms", "600"]);
        assert!(serving.url.starts_with("http://127.0.0.1:"), "{}", serving.url);
        let request = client().get(format!("{}/anything/201", serving.url)).send();
        let request = tokio::spawn(request);
        loop {
            let stats = client().get(format!("{}/stats", serving.url)).send().await;
            let stats = stats.expect("an answer").text().await.expect("text");
            if stats.contains("\"requests\":1") {
                break;
            }
        }
        serving.tell(signal);
        assert_eq!(request.await.expect("no panic").expect("an answer").status(), 201);
        let status = serving.child.wait().expect("it ends");
        assert_eq!(status.code(), Some(0), "{signal}");
        let mut rest = String::new();
        let stdout = serving.child.stdout.as_mut().expect("piped");
        stdout.read_to_string(&mut rest).expect("UTF-8");
        assert_eq!(rest, "", "only the address is printed");
    }
}

#[tokio::test]
async fn the_flags_make_the_limit_and_the_file_the_scenario() {
    let directory = tempfile::tempdir().expect("a directory");
    let toml = directory.path().join("scenario.toml");
    let json = directory.path().join("scenario.json");
    let step = "[[step]]\nwhen = { path = '/anything/200', first = 2 }\n\
                then = { kind = 'status', status = 529 }";
    fs::write(&toml, step).expect("a file");
    let step = r#"{"step": [{"when": {"path": "/anything/200", "first": 2},
                             "then": {"kind": "status", "status": 529}}]}"#;
    fs::write(&json, step).expect("a file");
    for file in [&toml, &json] {
        let file = file.to_str().expect("UTF-8");
        let serving = Serving::start(&[
            "--rate",
            "0.001",
            "--burst",
            "2",
            "--latency-ms",
            "0",
            "--scenario",
            file,
        ]);
        let mut statuses = Vec::new();
        for path in ["/anything/200", "/anything/200", "/anything/201", "/anything/201"] {
            let response = client().get(format!("{}{path}", serving.url)).send().await;
            statuses.push(response.expect("an answer").status().as_u16());
        }
        assert_eq!(statuses, [200, 529, 201, 429]);
    }
}

#[test]
fn the_scenarios_beside_the_code_can_be_played() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    let files: Vec<_> = fs::read_dir(directory).expect("a directory").collect();
    assert!(files.len() >= 3);
    for file in files {
        let path = file.expect("an entry").path();
        let scenario = Scenario::read(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        assert!(!scenario.steps.is_empty(), "{path:?}");
    }
}

#[test]
fn a_bad_scenario_is_one_line_that_names_the_place_and_what_is_allowed() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("scenario.toml");
    let path = file.to_str().expect("UTF-8");
    for (scenario, expected) in [
        ("seed = 1\nsteps = []", &["line 2", "steps", "step"][..]),
        ("[[step]]\nwhen = {}", &["line 1", "then"]),
        ("[[step]]\nthen = { kind = 'nap' }", &["line 2", "nap", "overloaded"]),
        ("[[step]]\nthen = { kind = 'quota', status = 1 }", &["line 2", "status"]),
        ("[[step]]\nthen = { kind = 'status' }", &["line 2", "status"]),
        ("[[step]]\nthen = { kind = 'status', status = 200 }", &["step 1", "400 to 599"]),
        ("[[step]]\nwhen = { form = '1s' }\nthen = { kind = 'quota' }", &["form", "from"]),
        ("[[step]]\nwhen = { from = 1 }\nthen = { kind = 'quota' }", &["line 2", "string"]),
        ("[[step]]\nwhen = { from = '1' }\nthen = { kind = 'quota' }", &["line 2", "1m 30s"]),
        ("[[step]]\nwhen = { first = 0 }\nthen = { kind = 'quota' }", &["line 2", "nonzero"]),
        (
            "[[step]]\nwhen = { from = '1s', until = '1s' }\nthen = { kind = 'quota' }",
            &["step 1", "`until` must be after `from`"],
        ),
        (
            "[[step]]\nwhen = { first = 3, last = 2 }\nthen = { kind = 'quota' }",
            &["step 1", "`last` must not be below `first`"],
        ),
        (
            "[[step]]\nwhen = { probability = 1.5 }\nthen = { kind = 'quota' }",
            &["step 1", "from 0 to 1"],
        ),
        (
            "[[step]]\nwhen = { probability = nan }\nthen = { kind = 'quota' }",
            &["step 1", "from 0 to 1"],
        ),
        ("[[step]]\nwhen = { path = 'v1' }\nthen = { kind = 'quota' }", &["step 1", "slash"]),
        ("[[step]]\nthen = { kind = 'limit', rate = 0, burst = 1 }", &["0.000001 to 1000000"]),
        (
            "[[step]]\nthen = { kind = 'limit', rate = 0.000001, burst = 4294967295 }",
            &["step 1", "`burst` is too high for `rate`"],
        ),
        (
            "[[step]]\nwhen = { path = '/a' }\nthen = { kind = 'limit', rate = 1, burst = 1 }",
            &["step 1", "only `from` and `until`"],
        ),
        ("[[step]\n", &["line 1"]),
    ] {
        fs::write(&file, scenario).expect("a file");
        assert_line(&["--scenario", path], &[&["--scenario", "scenario.toml"], expected].concat());
    }
    let json = directory.path().join("scenario.json");
    fs::write(&json, "{\"step\": [{}]}").expect("a file");
    assert_line(&["--scenario", json.to_str().expect("UTF-8")], &["then", "line 1"]);
}

#[test]
fn bad_arguments_are_one_line_each() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = taken.local_addr().expect("an address").to_string();
    for (arguments, expected) in [
        (&["--rate", "0"][..], &["--rate", "0.000001"][..]),
        (&["--burst", "0"], &["--burst", "4294967295"]),
        (&["--latency-ms", "-1"], &["--latency-ms", "3600000"]),
        (&["--rate", "0.000001", "--burst", "100"], &["--burst", "--rate"]),
        (&["--addr", "nowhere"], &["--addr", "nowhere"]),
        (&["--addr", &taken], &["--addr", &taken]),
        (&["--scenario", "/does/not/exist"], &["--scenario", "/does/not/exist"]),
    ] {
        assert_line(arguments, expected);
    }
}

#[test]
fn help_tells_everything() {
    let help = printed(["serve", "--help"]);
    for part in [
        "--addr",
        "--rate",
        "--burst",
        "--latency-ms",
        "--scenario",
        "/v1/messages",
        "/v1/chat/completions",
        "/anything/",
        "/stats",
        "/arrivals.csv",
        "status",
        "quota",
        "hint",
        "slow",
        "reset",
        "cut",
        "overloaded",
        "limit",
        "probability",
        "SIGTERM",
    ] {
        assert!(help.contains(part), "no {part} in {help}");
    }
    assert!(help.lines().all(|line| line.chars().count() <= 100), "too wide: {help}");
}

/// Exit code 2, and on stderr one line with all that is expected in it.
fn assert_line(arguments: &[&str], expected: &[&str]) {
    let output = output(["serve"].into_iter().chain(arguments.iter().copied()));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
    assert!(output.stdout.is_empty(), "{arguments:?}: {output:?}");
    assert_eq!(stderr.lines().count(), 1, "{arguments:?}: {stderr}");
    for part in expected {
        assert!(stderr.contains(part), "{arguments:?}: no {part:?} in {stderr}");
    }
}

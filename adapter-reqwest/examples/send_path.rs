//! What a guard adds to a request that succeeds at once, in instructions: `cargo run --release -p
//! holdoff-reqwest --example send_path`. Needs valgrind.
//!
//! Runs itself under callgrind, which counts the same on any machine, as a client that sends one
//! request, and as one that sends 1,001, to a server in a process of its own; the difference is the
//! cost of a thousand.

use core::error::Error;
use core::num::NonZeroUsize;
use std::env;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};

use holdoff_reqwest::{
    BreakerConfig, BudgetConfig, Guarded, Policy, Quota, Rate, Ratio, Upstream, Upstreams, valid,
};
use reqwest::{Client, Response, Url};

/// What sends the requests.
const SENDERS: [&str; 5] = ["reqwest", "policy", "send", "execute", "per_host"];

/// Beside the first, which connects.
const REQUESTS: u64 = 1_000;

/// What else happens varies a little; the least of so many runs is what has to happen.
const RUNS: u32 = 3;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = env::args().skip(1).collect();
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => measure(),
        ["serve"] => serve(),
        [sender, requests, url] => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(send(sender, requests.parse()?, url.parse()?))
        }
        _ => Err("no arguments are needed".into()),
    }
}

fn measure() -> Result<(), Box<dyn Error>> {
    let mut server =
        Command::new(env::current_exe()?).arg("serve").stdout(Stdio::piped()).spawn()?;
    let mut url = String::new();
    BufReader::new(server.stdout.take().ok_or("no output")?).read_line(&mut url)?;
    let counted = table(url.trim());
    server.kill()?;
    server.wait()?;
    counted
}

fn table(url: &str) -> Result<(), Box<dyn Error>> {
    let mut bare = None;
    println!("sender     instructions   more than bare");
    for sender in SENDERS {
        let mut each = u64::MAX;
        for _ in 0..RUNS {
            let [one, many] = [1, 1 + REQUESTS].map(|requests| count(sender, requests, url));
            each = each.min(many?.saturating_sub(one?) / REQUESTS);
        }
        let more = i128::from(each) - i128::from(*bare.get_or_insert(each));
        println!("{sender:8} {each:14} {more:16}");
    }
    Ok(())
}

fn count(sender: &str, requests: u64, url: &str) -> Result<u64, Box<dyn Error>> {
    let run = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(env::current_exe()?)
        .args([sender, &requests.to_string(), url])
        .output()?;
    let text = String::from_utf8_lossy(&run.stderr);
    let collected = text.lines().find_map(|line| line.split_once("Collected :"));
    let (_, count) = collected.filter(|_| run.status.success()).ok_or_else(|| text.clone())?;
    Ok(count.trim().parse()?)
}

async fn send(sender: &str, requests: u64, url: Url) -> Result<(), Box<dyn Error>> {
    let client = Client::builder().no_proxy().build()?;
    let whole = || {
        Upstream::new(Policy::INTERACTIVE)
            .with_limiter(valid!(Quota::new(Rate::per_second(1_000_000), 1_000)))
            .with_breaker(valid!(BreakerConfig::rate(20, Ratio::percent(50)).build()))
            .with_budget(valid!(BudgetConfig::new(10, Ratio::percent(10)).build()))
    };
    let upstreams: Upstreams = match sender {
        "policy" => Upstream::new(Policy::INTERACTIVE).into(),
        "per_host" => Upstreams::per_host(NonZeroUsize::MIN, move |_| whole()),
        _ => whole().into(),
    };
    let guarded = Guarded::new(client, upstreams);
    for _ in 0..requests {
        let request = |client: &Client| client.get(url.clone());
        let response: Response = match sender {
            "reqwest" => request(guarded.client()).send().await?,
            "execute" => guarded.execute(request(guarded.client()).build()?).await?,
            _ => guarded.send(request).await?,
        };
        response.bytes().await?;
    }
    Ok(())
}

/// Prints its address and answers every request alike.
fn serve() -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("http://{}/", listener.local_addr()?);
    for stream in listener.incoming() {
        let mut stream = stream?;
        std::thread::spawn(move || {
            let mut request = [0; 4096];
            while stream.read(&mut request).is_ok_and(|read| read > 0) {
                let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
                if stream.write_all(answer).is_err() {
                    break;
                }
            }
        });
    }
    Ok(())
}

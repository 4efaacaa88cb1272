//! A service that is busy at first, and a client that does not mind: `cargo run -p holdoff-reqwest
//! --example first_request`.

use core::time::Duration;
use std::time::Instant;

use holdoff_reqwest::{Error, GaveUp, Guard, Guarded, Policy, RequestOptions, Upstream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn core::error::Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/", listener.local_addr()?);
    tokio::spawn(serve(listener));

    let guarded = Guarded::new(reqwest::Client::new(), Guard::llm(Upstream::new(Policy::LLM)));

    // The first answer says "in half a second", so that is when the second attempt is made.
    let started = Instant::now();
    let response = guarded.send(|client| client.post(&url).body("hello")).await?;
    println!("{} after {:.1?}", response.text().await?, started.elapsed());

    // The next one says "in an hour". Nobody waits for that.
    let response = guarded.send(|client| client.post(&url).body("hello")).await?;
    if let Some(gave_up) = response.extensions().get::<GaveUp<()>>() {
        println!("{}: {gave_up}", response.status());
    }

    // And this one never answers.
    let options = RequestOptions::new().with_deadline(Duration::from_millis(200));
    let late: Result<_, Error> =
        guarded.send_with(&options, |client| client.post(&url).body("hello")).await;
    if let Err(error) = late {
        println!("{error}");
    }
    Ok(())
}

/// Gives these answers in turn.
async fn serve(listener: TcpListener) -> std::io::Result<()> {
    const BUSY: &str = "HTTP/1.1 429 Too Many Requests\r\ncontent-length: 0\r\nretry-after: ";
    let answers = [
        format!("{BUSY}0.5\r\n\r\n"),
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello".to_owned(),
        format!("{BUSY}3600\r\n\r\n"),
    ];
    let (mut stream, _) = listener.accept().await?;
    let mut request = [0; 4096];
    for answer in answers {
        let _ = stream.read(&mut request).await?;
        stream.write_all(answer.as_bytes()).await?;
    }
    core::future::pending().await
}

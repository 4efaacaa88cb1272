//! What traces show of attempts.

use std::io::Write;
use std::sync::{Arc, Mutex};

use tracing_subscriber::fmt::format::FmtSpan;

use crate::server::{Server, answer};
use crate::{get, quick};

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn each_attempt_is_a_span_with_its_resend_count() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::DEBUG)
        .with_span_events(FmtSpan::CLOSE)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let server = Server::replies(vec![answer(503, &[], ""), answer(200, &[], "")]).await;
    get(&quick(), &server).await.unwrap();
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    let attempts: Vec<_> = log
        .lines()
        .filter(|line| line.contains("holdoff.http_attempt{") && line.contains("close"))
        .collect();
    assert_eq!(attempts.len(), 2, "{log}");
    for (line, has, status) in [(attempts[0], false, 503), (attempts[1], true, 200)] {
        assert_eq!(line.contains("http.request.resend_count=1"), has, "{line}");
        assert!(line.contains(&format!("http.response.status_code={status}")), "{line}");
        assert!(line.contains("server.address=\"127.0.0.1\""), "{line}");
        assert!(line.contains("holdoff.call{"), "{line}");
    }
}

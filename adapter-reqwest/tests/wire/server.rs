//! A server that says, byte by byte, what a test wants it to.

use core::net::SocketAddr;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A request, as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) method: String,
    pub(crate) path: String,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// Which connection it came over.
    pub(crate) connection: usize,
    /// 0 for the first one the server sees.
    pub(crate) number: usize,
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers.find(|(header, _)| header == name).map(|(_, value)| &**value)
    }
}

/// What the server does with a request.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// These bytes; the connection stays.
    Bytes(Vec<u8>),
    /// These bytes, then the end of the connection.
    Close(Vec<u8>),
    /// These bytes, then a reset.
    Reset(Vec<u8>),
    /// These bytes, and then nothing for ever.
    Hang(Vec<u8>),
    /// That, after a while.
    Later(Duration, Box<Self>),
}

/// An answer of `status` with a body of text.
pub(crate) fn answer(status: u16, headers: &[(&str, &str)], body: &str) -> Reply {
    Reply::Bytes(message(status, headers, body))
}

pub(crate) fn message(status: u16, headers: &[(&str, &str)], body: &str) -> Vec<u8> {
    let mut text = format!("HTTP/1.1 {status} Whatever\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        text += &format!("{name}: {value}\r\n");
    }
    (text + "\r\n" + body).into_bytes()
}

/// An answer whose body is shorter than it says.
pub(crate) fn truncated(status: u16) -> Vec<u8> {
    format!("HTTP/1.1 {status} Whatever\r\ncontent-length: 100\r\n\r\nonly this").into_bytes()
}

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    received: Arc<Mutex<Vec<Received>>>,
    task: JoinHandle<()>,
}

impl Server {
    pub(crate) async fn start(reply: impl Fn(&Received) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let received = Arc::new(Mutex::new(Vec::new()));
        let (log, reply, connections) =
            (Arc::clone(&received), Arc::new(reply), AtomicUsize::new(0));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let number = connections.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(serve(stream, number, Arc::clone(&log), Arc::clone(&reply)));
            }
        });
        Self { address, received, task }
    }

    /// One that gives these replies in turn, the last one for ever.
    pub(crate) async fn replies(replies: Vec<Reply>) -> Self {
        let last = replies.len() - 1;
        Self::start(move |request| replies[request.number.min(last)].clone()).await
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn received(&self) -> Vec<Received> {
        self.received.lock().expect("no panic").clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(
    mut stream: TcpStream,
    connection: usize,
    log: Arc<Mutex<Vec<Received>>>,
    reply: Arc<impl Fn(&Received) -> Reply>,
) {
    let mut buffer = Vec::new();
    while let Some(mut request) = read_request(&mut stream, &mut buffer).await {
        request.connection = connection;
        {
            let mut log = log.lock().expect("no panic");
            request.number = log.len();
            log.push(request.clone());
        }
        let mut reply = reply(&request);
        while let Reply::Later(delay, later) = reply {
            tokio::time::sleep(delay).await;
            reply = *later;
        }
        let (Reply::Bytes(bytes) | Reply::Close(bytes) | Reply::Reset(bytes) | Reply::Hang(bytes)) =
            &reply
        else {
            unreachable!("taken apart above")
        };
        if stream.write_all(bytes).await.is_err() {
            return;
        }
        match reply {
            Reply::Bytes(_) => {}
            Reply::Reset(bytes) => {
                if !bytes.is_empty() {
                    // So that they are read first.
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                let _ = stream.set_zero_linger();
                return;
            }
            Reply::Hang(_) => core::future::pending().await,
            _ => return,
        }
    }
}

async fn read_request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Received> {
    let head_end = loop {
        if let Some(at) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        more(stream, buffer).await?;
    };
    let head = String::from_utf8_lossy(&buffer[..head_end]).into_owned();
    buffer.drain(..head_end);
    let mut lines = head.lines();
    let mut first = lines.next()?.split(' ').map(str::to_owned);
    let (method, path) = (first.next()?, first.next()?);
    let headers: Vec<_> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let mut request =
        Received { method, path, headers, body: Vec::new(), connection: 0, number: 0 };
    if request.header("transfer-encoding").is_some() {
        loop {
            let line_end = loop {
                if let Some(at) = buffer.windows(2).position(|window| window == b"\r\n") {
                    break at;
                }
                more(stream, buffer).await?;
            };
            let size = String::from_utf8_lossy(&buffer[..line_end]).into_owned();
            let size = usize::from_str_radix(&size, 16).ok()?;
            while buffer.len() < line_end + 2 + size + 2 {
                more(stream, buffer).await?;
            }
            request.body.extend_from_slice(&buffer[line_end + 2..][..size]);
            buffer.drain(..line_end + 2 + size + 2);
            if size == 0 {
                return Some(request);
            }
        }
    }
    let length = request.header("content-length").map_or(0, |length| length.parse().unwrap_or(0));
    while buffer.len() < length {
        more(stream, buffer).await?;
    }
    request.body = buffer.drain(..length).collect();
    Some(request)
}

async fn more(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<()> {
    let read = stream.read_buf(buffer).await.ok()?;
    (read > 0).then_some(())
}

//! Connections: accepted, served, and reset or ended in good order.

use core::pin::{Pin, pin};
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::{Context, Poll};
use core::time::Duration;
use std::io;
use std::sync::Arc;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::handler::Handler;

/// The rest before the next try when no connection can be accepted, for want of file descriptors.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);

/// Set, it lets the connection go with a reset instead of in good order.
#[derive(Clone, Debug, Default)]
pub(super) struct ResetSwitch(Arc<AtomicBool>);

impl ResetSwitch {
    pub(super) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Serves until told to stop; then finishes what is in flight, for at most `drain`.
pub(super) async fn serve(
    listener: TcpListener,
    handler: Arc<Handler>,
    mut stop: watch::Receiver<bool>,
    drain: Duration,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            // A sender that is gone says the same.
            _ = stop.changed() => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(connection(stream, Arc::clone(&handler), stop.clone()));
                }
                Err(_) => sleep(ACCEPT_AGAIN).await,
            },
        }
    }
    drop(listener);
    let _ = timeout(drain, async { while connections.join_next().await.is_some() {} }).await;
    connections.shutdown().await;
}

async fn connection(stream: TcpStream, handler: Arc<Handler>, mut stop: watch::Receiver<bool>) {
    // Small pieces go out as they are; where that cannot be had, they come late.
    let _ = stream.set_nodelay(true);
    let reset = ResetSwitch::default();
    let is_used = AtomicBool::new(false);
    let wire = Wire { stream, reset: reset.clone() };
    let service = service_fn(|request| {
        is_used.store(true, Ordering::Relaxed);
        handler.handle(request, reset.clone())
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .serve_connection(TokioIo::new(wire), service);
    let mut connection = pin!(connection);
    tokio::select! {
        // What a client does to its connection is its own affair.
        _ = connection.as_mut() => return,
        _ = stop.changed() => {}
    }
    // One that was opened in advance has no answer to finish and may never ask for one.
    if is_used.load(Ordering::Relaxed) {
        connection.as_mut().graceful_shutdown();
        let _ = connection.await;
    }
}

/// A connection that can be let go with a reset.
#[derive(Debug)]
struct Wire {
    stream: TcpStream,
    reset: ResetSwitch,
}

impl Drop for Wire {
    fn drop(&mut self) {
        if self.reset.0.load(Ordering::Relaxed) {
            // A socket that is gone already needs no reset.
            let _ = self.stream.set_zero_linger();
        }
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, bytes)
    }
}

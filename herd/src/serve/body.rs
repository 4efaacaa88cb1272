//! A body in pieces, which may end badly.

use core::fmt;
use core::future::Future;
use core::num::NonZeroUsize;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use core::time::Duration;
use std::collections::VecDeque;

use hyper::body::{Body, Bytes, Frame, SizeHint};
use tokio::time::{Sleep, sleep};

use super::connection::ResetSwitch;
use super::desk::{Answer, Ending};

/// Time for what was said to be on its way before the connection goes.
const LAST_WORDS: Duration = Duration::from_millis(10);

/// The body of an answer.
#[derive(Debug)]
pub(super) struct Pieces {
    pieces: VecDeque<Bytes>,
    /// The time from one piece to the next.
    pause: Duration,
    sleep: Option<Pin<Box<Sleep>>>,
    /// What is said in advance; a stream says nothing.
    length: Option<u64>,
    end: End,
}

#[derive(Debug)]
enum End {
    Close,
    Complete,
    Reset(ResetSwitch),
}

/// The connection is to be closed without an end of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Broken;

impl Pieces {
    pub(super) fn new(answer: Answer, reset: ResetSwitch) -> Self {
        let total: usize = answer.pieces.iter().map(Bytes::len).sum();
        let (pieces, end) = match answer.ending {
            Ending::Complete => (answer.pieces, End::Complete),
            Ending::Cut => (answer.pieces, End::Close),
            Ending::Reset(bytes) => (first_bytes(answer.pieces, bytes), End::Reset(reset)),
            Ending::Silence => (Vec::new(), End::Reset(reset)),
        };
        let (pieces, pause) = match answer.trickle {
            Some(trickle) => (split(&pieces, trickle.bytes), trickle.every),
            None => (pieces.into(), Duration::ZERO),
        };
        let length = if answer.is_stream { None } else { u64::try_from(total).ok() };
        let mut body = Self { pieces, pause, sleep: None, length, end };
        if body.pieces.is_empty() {
            body.pause();
        }
        body
    }

    /// Waits before what comes next, a piece or the end.
    fn pause(&mut self) {
        let pause = match (self.pieces.is_empty(), &self.end) {
            (false, _) => self.pause,
            (true, End::Complete) => Duration::ZERO,
            (true, End::Close | End::Reset(_)) => LAST_WORDS,
        };
        self.sleep = (!pause.is_zero()).then(|| Box::pin(sleep(pause)));
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        if let Some(sleep) = &mut self.sleep {
            ready!(sleep.as_mut().poll(context));
            self.sleep = None;
        }
        if let Some(piece) = self.pieces.pop_front() {
            self.pause();
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        match &self.end {
            End::Complete => return Poll::Ready(None),
            End::Close => {}
            End::Reset(reset) => reset.set(),
        }
        Poll::Ready(Some(Err(Broken)))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty() && matches!(self.end, End::Complete)
    }

    fn size_hint(&self) -> SizeHint {
        self.length.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

fn first_bytes(pieces: Vec<Bytes>, mut bytes: usize) -> Vec<Bytes> {
    let first = pieces.into_iter().map(|mut piece| {
        piece.truncate(bytes);
        bytes -= piece.len(); // OK: cut to it.
        piece
    });
    first.filter(|piece| !piece.is_empty()).collect()
}

fn split(pieces: &[Bytes], size: NonZeroUsize) -> VecDeque<Bytes> {
    let parts = |piece: &Bytes| -> Vec<Bytes> {
        piece.chunks(size.get()).map(|part| piece.slice_ref(part)).collect()
    };
    pieces.iter().flat_map(parts).collect()
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the scenario breaks the connection")
    }
}

impl core::error::Error for Broken {}

//! A link that is meant to stay, connected again with care.

use core::time::Duration;

use holdoff::{Backoff, Clock, Hint, HintTooLong, Instant, Timer};

use crate::random::Random;
use crate::timer::EmbassyTimer;

/// When a link that is meant to stay (MQTT, TCP) is connected again, on embassy's clock.
///
/// The backoff begins anew only after a session of at least `stable_for`: a broker that accepts and
/// throws out is not stormed. In a loop, [`ready`](Self::ready) before each connect and
/// [`connected`](Self::connected) after one that the server accepted is all there is to say:
///
/// ```
/// use core::time::Duration;
/// use holdoff_embassy::{Backoff, BackoffConfig, Jitter, Random, Reconnect, valid};
///
/// const BACKOFF: Backoff = valid!(
///     BackoffConfig::exponential(Duration::from_secs(1))
///         .with_max_delay(Duration::from_secs(60))
///         .with_jitter(Jitter::Equal)
///         .build()
/// );
///
/// async fn connect() -> Result<(), ()> {
///     Ok(()) // the server has accepted
/// }
/// async fn session() {
///     // returns when the link is lost
/// }
///
/// async fn keep_connected(random: &mut Random) -> ! {
///     let mut link = Reconnect::new(BACKOFF, Duration::from_secs(30), random);
///     loop {
///         link.ready().await;
///         if connect().await.is_ok() {
///             link.connected();
///             session().await;
///         }
///     }
/// }
/// # use core::{future::Future, pin::pin, task::{Context, Waker}};
/// # let mut random = Random::from_entropy(1);
/// # let mut task = pin!(keep_connected(&mut random));
/// # assert!(task.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
/// ```
#[derive(Debug)]
pub struct Reconnect<'a> {
    machine: holdoff::Reconnect,
    random: &'a mut Random,
    /// When the next try may be made, once that is known.
    next: Next,
}

#[derive(Clone, Copy, Debug)]
enum Next {
    /// A try has been made, of which no end is known yet.
    Open,
    NotBefore(Instant),
}

impl<'a> Reconnect<'a> {
    /// A link that has not been connected yet; the first try is made at once.
    ///
    /// `stable_for` is the shortest session after which the backoff begins anew. A fleet that is
    /// switched on together had better wait a moment of its own before it begins.
    #[must_use]
    pub const fn new(backoff: Backoff, stable_for: Duration, random: &'a mut Random) -> Self {
        let machine = holdoff::Reconnect::new(backoff, stable_for);
        Self { machine, random, next: Next::NotBefore(Instant::EPOCH) }
    }

    /// The same link, with the longest hint that is obeyed, inclusive. Defaults to 5 minutes.
    #[must_use]
    pub const fn with_max_hint(self, max_hint: Duration) -> Self {
        Self { machine: self.machine.with_max_hint(max_hint), ..self }
    }

    /// Waits until the link may be connected, and begins that try.
    ///
    /// Whatever was tried before is over with this, if it was not said to be
    /// [lost](Self::lost).
    ///
    /// # Cancel safety
    /// Dropped while it waits, it begins no try; the next call waits for the same instant.
    pub async fn ready(&mut self) {
        let until = self.lost();
        EmbassyTimer.sleep_until(until).await;
        self.next = Next::Open;
    }

    /// The server has accepted the session: MQTT's `CONNACK`, say, and not TCP's handshake.
    ///
    /// Also without a [`ready`](Self::ready) before it, if that was dropped or left out: the end of
    /// this session is an end of its own, and waited for.
    pub fn connected(&mut self) {
        self.machine.connected(EmbassyTimer.now());
        self.next = Next::Open;
    }

    /// The connect has failed or the session is over: when the next try may be made.
    ///
    /// For those who want to know, or have something to do meanwhile: [`ready`](Self::ready) says
    /// so by itself. Said twice it is the same end.
    pub fn lost(&mut self) -> Instant {
        let until = match self.next {
            Next::NotBefore(until) => until,
            Next::Open => self.machine.lost(EmbassyTimer.now(), self.random.next_u64()),
        };
        self.next = Next::NotBefore(until);
        until
    }

    /// As [`lost`](Self::lost), but not before `hint` has passed: what the server said about coming
    /// back.
    ///
    /// # Errors
    /// [`HintTooLong`] for a hint above the [maximum](Self::with_max_hint). Nothing has changed:
    /// turn to another server, or go on as if the hint were not there.
    pub fn lost_with(&mut self, hint: Hint) -> Result<Instant, HintTooLong> {
        let until = match self.next {
            Next::NotBefore(until) => until,
            Next::Open => {
                self.machine.lost_with(EmbassyTimer.now(), hint, self.random.next_u64())?
            }
        };
        self.next = Next::NotBefore(until);
        Ok(until)
    }

    /// Tries waited for since the last stable session, at most `u32::MAX`.
    #[must_use]
    pub const fn retries(&self) -> u32 {
        self.machine.retries()
    }
}

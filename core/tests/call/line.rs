//! Calls that stand in line for a limiter.

use core::cell::Cell;
use core::time::Duration;

use holdoff::drive::{self, Queue, QueueFull};
use holdoff::{
    BackoffConfig, BreakerConfig, Call, CircuitBreaker, Clock, Failure, Instant, Limiter, Mode,
    Policy, PolicyConfig, Quota, Rate, Safety, Stop, Timer, classified,
};

use crate::common::timer::ManualTimer;
use crate::common::{at, secs};

/// A line whose head is free from `free_at` on, and in which one change is announced, at
/// `changed_at`.
struct Line<'a> {
    timer: &'a ManualTimer,
    free_at: Instant,
    changed_at: Cell<Instant>,
    /// What the change is.
    change: &'a dyn Fn(),
    joined: Cell<u32>,
    /// Until when a limit has nothing that is to be waited for before the limiter.
    missing_until: Instant,
    is_full: bool,
    held: Cell<bool>,
}

impl<'a> Line<'a> {
    fn new(timer: &'a ManualTimer, free_at: Instant) -> Self {
        Self {
            timer,
            free_at,
            changed_at: Cell::new(Instant::MAX),
            change: &|| (),
            joined: Cell::new(0),
            missing_until: Instant::EPOCH,
            is_full: false,
            held: Cell::new(false),
        }
    }
}

struct Head<'a>(&'a Cell<bool>);

impl Drop for Head<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

impl<'b> Queue for &'b Line<'_> {
    type Place = Head<'b>;

    async fn join(&self, place: Option<Head<'b>>) -> Result<Head<'b>, QueueFull> {
        if let Some(place) = place {
            return Ok(place);
        }
        if self.is_full {
            return Err(QueueFull);
        }
        self.joined.set(self.joined.get() + 1);
        self.timer.sleep_until(self.free_at).await;
        assert!(!self.held.replace(true), "two heads");
        Ok(Head(&self.held))
    }

    fn missing(&self, _place: &Head<'b>) -> Option<Instant> {
        Some(self.missing_until).filter(|&until| self.timer.now() < until)
    }

    async fn changed(&self, _place: &Head<'b>) {
        assert!(self.held.get(), "only the head waits for the limiter");
        self.timer.sleep_until(self.changed_at.get()).await;
        self.changed_at.set(Instant::MAX);
        (self.change)();
    }
}

const SECOND: Duration = secs(1);

fn policy(max_attempts: u32) -> PolicyConfig {
    let backoff = BackoffConfig::constant(secs(5)).build().expect("valid");
    PolicyConfig::new(backoff).with_max_attempts(max_attempts)
}

fn limiter(tokens: u32, per: Duration, burst: u32) -> Limiter {
    Limiter::new(Quota::new(Rate::new(tokens, per), burst).expect("valid"))
}

/// Runs a call that always fails through `line`; when its attempts started, and how it ended.
fn starts(line: &Line<'_>, policy: &Policy, limiter: &Limiter, cost: u32) -> (Vec<Instant>, Stop) {
    let timer = line.timer;
    let started = Cell::new(Vec::new());
    let result = timer.run(drive::run(
        timer,
        &line,
        |now| Call::new(policy, Safety::Idempotent, now).with_limiter(limiter, cost),
        || 0,
        classified,
        |_| {
            assert!(!line.held.get(), "an attempt holds up the line");
            let mut starts = started.take();
            starts.push(timer.now());
            started.set(starts);
            async {
                timer.sleep(SECOND).await;
                Err::<(), _>(Failure::transient())
            }
        },
    ));
    assert!(!line.held.get());
    assert_eq!(timer.sleeping(), 0);
    (started.take(), result.expect_err("it always fails").stop)
}

#[test]
fn each_attempt_stands_in_line_once_and_leaves_it_when_it_starts() {
    let timer = ManualTimer::new(Instant::EPOCH);
    let line = Line::new(&timer, at(secs(2)));
    let policy = policy(3).build().expect("valid");
    let limiter = limiter(1, secs(20), 1);
    let (started, stop) = starts(&line, &policy, &limiter, 1);
    assert_eq!(started, [2, 22, 42].map(|start| at(secs(start))));
    assert_eq!((line.joined.get(), stop), (3, Stop::Attempts));
}

#[test]
fn a_call_leaves_the_line_at_its_deadline() {
    let policy = policy(3).with_deadline(secs(30)).build().expect("valid");
    for (free_at, expected) in
        [(Instant::MAX, vec![]), (at(secs(30)), vec![]), (at(secs(29)), vec![at(secs(29))])]
    {
        let timer = ManualTimer::new(Instant::EPOCH);
        let line = Line::new(&timer, free_at);
        let (started, stop) = starts(&line, &policy, &limiter(1, SECOND, 1), 1);
        assert_eq!((started, stop), (expected, Stop::Deadline), "{free_at:?}");
        assert!(timer.now() <= at(secs(30)));
    }
}

#[test]
fn what_needs_no_token_does_not_stand_in_line() {
    let policy = policy(2).build().expect("valid");
    let timer = ManualTimer::new(Instant::EPOCH);
    let blocked = Line::new(&timer, Instant::MAX);
    let limiter = limiter(1, SECOND, 100);
    let free = starts(&blocked, &policy, &limiter, 0);
    assert_eq!(free, (vec![at(secs(0)), at(secs(6))], Stop::Attempts));
    for cost in [101, 200, u32::MAX] {
        let never = starts(&blocked, &policy, &limiter, cost);
        assert_eq!(never, (vec![], Stop::CostTooHigh { burst: 100 }), "{cost}");
    }
    assert_eq!(blocked.joined.get(), 0);
}

#[test]
fn the_head_hears_of_a_change_while_it_sleeps() {
    let timer = ManualTimer::new(Instant::EPOCH);
    let limiter = limiter(1, secs(100), 1);
    assert_eq!(limiter.try_acquire(Instant::EPOCH, 1), Ok(()));
    let faster = || {
        let quota = Quota::new(Rate::new(1, secs(10)), 1).expect("valid");
        limiter.set_quota(timer.now(), quota).expect("nobody else is at it");
    };
    let line = Line {
        changed_at: Cell::new(at(secs(50))),
        change: &faster,
        ..Line::new(&timer, Instant::EPOCH)
    };
    let policy = policy(1).build().expect("valid");
    // Half a token at 50 s, the other half in 5 s more.
    let (started, _) = starts(&line, &policy, &limiter, 1);
    assert_eq!(started, [at(secs(55))]);
}

#[test]
fn a_limit_before_the_limiter_is_waited_for_if_there_is_time() {
    let timer = ManualTimer::new(Instant::EPOCH);
    let limiter = limiter(1, secs(100), 1);
    let line = || Line { missing_until: at(secs(30)), ..Line::new(&timer, Instant::EPOCH) };
    let late = policy(1).with_deadline(secs(20)).build().expect("valid");
    let answer = starts(&line(), &late, &limiter, 1);
    assert_eq!((answer, timer.now()), ((vec![], Stop::Deadline), Instant::EPOCH));
    let (started, _) = starts(&line(), &policy(1).build().expect("valid"), &limiter, 1);
    assert_eq!(started, [at(secs(30))]);
}

#[test]
fn a_full_line_stops_the_call_at_once() {
    let timer = ManualTimer::new(Instant::EPOCH);
    let limiter = limiter(1, secs(100), 1);
    let line = Line { is_full: true, ..Line::new(&timer, Instant::EPOCH) };
    let (started, stop) = starts(&line, &policy(9).build().expect("valid"), &limiter, 1);
    assert_eq!((started, stop), (vec![], Stop::QueueFull));
    assert_eq!((timer.now(), limiter.available(timer.now())), (Instant::EPOCH, 1));
    assert_eq!(QueueFull.to_string(), "too many are waiting in line already");
}

#[test]
fn who_waits_for_a_limit_hears_that_the_breaker_opened() {
    let timer = ManualTimer::new(Instant::EPOCH);
    let limiter = limiter(1, secs(100), 1);
    let breaker: CircuitBreaker = BreakerConfig::consecutive(1).build().expect("valid");
    let opens = || breaker.set_mode(Mode::ForcedOpen);
    let line = Line {
        missing_until: at(secs(30)),
        changed_at: Cell::new(at(secs(10))),
        change: &opens,
        ..Line::new(&timer, Instant::EPOCH)
    };
    let policy = policy(1).build().expect("valid");
    let begin = |now| {
        let call = Call::new(&policy, Safety::Idempotent, now);
        call.with_limiter(&limiter, 1).with_breaker(&breaker)
    };
    let operation = async |_| Ok::<_, Failure>(());
    let answer = timer.run(drive::run(&timer, &&line, begin, || 0, classified, operation));
    let stop = answer.expect_err("it is open").stop;
    assert_eq!(stop, Stop::CircuitOpen { retry_at: Instant::MAX });
    assert_eq!(timer.now(), at(secs(10)));
}

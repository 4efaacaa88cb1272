//! A gateway: three tasks share one upstream to an uplink that fails now and then, is down for a
//! quarter of a minute, and sometimes asks to be left alone.
//!
//! Telemetry sends often, commands are fetched now and then, the firmware is looked for rarely.
//! Each keeps what it could not get rid of and asks again when the upstream says that it could make
//! sense.

#![no_std]
#![no_main]

mod uplink;

use core::cell::Cell;
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;

use cortex_m::Peripherals;
use cortex_m_rt::{entry, exception};
use cortex_m_semihosting::hprintln;
use critical_section::Mutex;
use embassy_executor::Spawner;
use embassy_time::Timer;
use holdoff_embassy::{
    BackoffConfig, BreakerConfig, BreakerState, BudgetConfig, Clock, Counters, CountersSnapshot,
    EmbassyTimer, PolicyConfig, Quota, Random, Rate, Ratio, Upstream, valid,
};
use holdoff_embassy_qemu::{executor, succeed, systick};

use self::uplink::{Seen, Uplink};

/// What the uplink allows, and less than the three would like.
const QUOTA: Quota = valid!(Quota::new(Rate::per_second(3), 3));
/// Retries: so many, and one more for each so many calls.
const RESERVE: u32 = 3;
const CALLS_PER_RETRY: u32 = 20;
const DEADLINE: Duration = Duration::from_secs(8);
const LONGEST_OPEN: Duration = Duration::from_secs(8);

/// Two wait behind the head at most: there are three of us.
static UPSTREAM: Upstream<2> = Upstream::new(valid!(
    PolicyConfig::new(valid!(
        BackoffConfig::exponential(Duration::from_millis(200))
            .with_max_delay(Duration::from_secs(2))
            .build()
    ))
    .with_attempt_timeout(Duration::from_millis(500))
    .with_deadline(DEADLINE)
    .build()
))
.with_limiter(QUOTA)
.with_breaker(valid!(
    BreakerConfig::consecutive(4)
        .with_open_period(Duration::from_secs(2))
        .with_max_open_period(LONGEST_OPEN)
        .build()
))
.with_budget(valid!(BudgetConfig::new(RESERVE, Ratio::percent(100 / CALLS_PER_RETRY)).build()))
.with_counters(Counters::new());

static UPLINK: Uplink = Uplink::new();

/// What the tasks have come to, by [`Job`].
static RESULTS: Mutex<[Cell<Tally>; 3]> = Mutex::new([const { Cell::new(Tally::NONE) }; 3]);
static DONE: AtomicU32 = AtomicU32::new(0);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Job {
    Telemetry,
    Commands,
    Firmware,
}

impl Job {
    const ALL: [Self; 3] = [Self::Telemetry, Self::Commands, Self::Firmware];

    const fn name(self) -> &'static str {
        match self {
            Self::Telemetry => "telemetry",
            Self::Commands => "commands",
            Self::Firmware => "firmware",
        }
    }

    /// How many answers it wants, and how long it rests after each.
    const fn work(self) -> (u32, Duration) {
        match self {
            Self::Telemetry => (150, Duration::from_millis(250)),
            Self::Commands => (80, Duration::from_millis(900)),
            Self::Firmware => (9, Duration::from_secs(10)),
        }
    }
}

#[derive(Clone, Copy)]
struct Tally {
    answers: u32,
    gave_up: u32,
    /// The longest call.
    longest: Duration,
    /// When the first answer after the outage was there (ms).
    back: Option<u64>,
}

impl Tally {
    const NONE: Self = Self { answers: 0, gave_up: 0, longest: Duration::ZERO, back: None };
}

#[entry]
fn main() -> ! {
    let Some(peripherals) = Peripherals::take() else { panic!("nobody has taken them before") };
    systick::start(peripherals.SYST, 1);
    executor::run(spawn)
}

fn spawn(spawner: Spawner) {
    let mut random = Random::from_device_id(b"gateway 17");
    for job in Job::ALL {
        match run(job, random.fork()) {
            Ok(task) => spawner.spawn(task),
            Err(error) => panic!("{error:?}"),
        }
    }
    match watchdog() {
        Ok(task) => spawner.spawn(task),
        Err(error) => panic!("{error:?}"),
    }
}

#[exception]
fn SysTick() {
    systick::on_tick();
}

/// Nobody waits for ever.
#[embassy_executor::task]
async fn watchdog() {
    Timer::after_secs(300).await;
    panic!("somebody still waits");
}

#[embassy_executor::task(pool_size = 3)]
async fn run(job: Job, mut random: Random) {
    let (wanted, rest) = job.work();
    let mut tally = Tally::NONE;
    while tally.answers < wanted {
        let begun = EmbassyTimer.now();
        let answer = UPSTREAM.call(&mut random, async || UPLINK.send().await).await;
        tally.longest = tally.longest.max(EmbassyTimer.now().saturating_duration_since(begun));
        let pause = match answer {
            Ok(()) => {
                tally.answers += 1;
                let now = systick::now();
                if now >= uplink::OUTAGE.end {
                    tally.back.get_or_insert(now);
                }
                rest
            }
            Err(gave_up) => {
                tally.gave_up += 1;
                gave_up.retry_after.unwrap_or(Duration::from_secs(1))
            }
        };
        critical_section::with(|section| RESULTS.borrow(section)[job as usize].set(tally));
        Timer::after_millis(u64::try_from(pause.as_millis()).unwrap_or(u64::MAX)).await;
    }
    if DONE.fetch_add(1, Ordering::Relaxed) == 2 {
        report();
        succeed()
    }
}

/// Prints what came of it, and checks it.
fn report() {
    let now = systick::now();
    hprintln!("all has been answered after {}.{:03} s", now / 1_000, now % 1_000);
    for job in Job::ALL {
        let tally = critical_section::with(|section| RESULTS.borrow(section)[job as usize].get());
        let Tally { answers, gave_up, longest, back } = tally;
        let back = back.unwrap_or(u64::MAX) - uplink::OUTAGE.end;
        hprintln!(
            "{}: {} answers, gave up {} times, longest call {:?}, back {} ms after the outage",
            job.name(),
            answers,
            gave_up,
            longest,
            back
        );
        assert_eq!(answers, job.work().0);
        assert!(longest <= DEADLINE, "waited too long");
        // The longest the breaker stays open, the time until it asks again, and some more tries.
        assert!(u128::from(back) < 2 * LONGEST_OPEN.as_millis(), "not back");
    }
    check(UPLINK.seen());
}

fn check(seen: Seen) {
    let Seen { requests, in_outage, throttled, failed } = seen;
    hprintln!(
        "uplink: {} requests, {} in the outage, {} failed, {} throttled",
        requests,
        in_outage,
        failed,
        throttled
    );
    let counted = UPSTREAM.counters().map(Counters::snapshot).unwrap_or_default();
    let CountersSnapshot { attempts, retries, opens, reopens, probes, time_open, .. } = counted;
    let CountersSnapshot { calls, successes, throttles, stops, .. } = counted;
    hprintln!("upstream: {} calls, {} attempts, {} retries", calls, attempts, retries);
    hprintln!("          {} answers, {} waits for the limiter", successes, throttles);
    hprintln!(
        "          open {} times and {} times again, {:?} in all; {} probes",
        opens,
        reopens,
        time_open,
        probes
    );
    hprintln!(
        "          stopped: {} attempts, {} budget, {} circuit open, {} deadline",
        stops.attempts,
        stops.budget,
        stops.circuit_open,
        stops.deadline
    );

    assert_eq!(attempts, u64::from(requests));
    assert_eq!(successes, Job::ALL.map(|job| u64::from(job.work().0)).iter().sum());
    let first_attempts = attempts - retries;
    let most = u64::from(RESERVE) + first_attempts / u64::from(CALLS_PER_RETRY);
    assert!(retries <= most && stops.budget > 0, "more than the budget, or it was never asked");
    assert!(opens >= 1 && stops.circuit_open > 0, "the breaker never opened");
    assert!(probes > reopens, "no probe found the uplink back");
    let state = UPSTREAM.breaker().map(|breaker| breaker.state(EmbassyTimer.now()));
    assert_eq!(state, Some(BreakerState::Closed));
    // The limiter alone would have let 45 through.
    assert!(in_outage < 15, "the uplink was not left alone");
    assert!(throttled == 2 && failed > 5, "the uplink was no test");
    assert!(throttles > 10, "nobody ever waited in line");
}

//! An interrupt that uses the same upstream as the code it interrupts cannot hang it.
//!
//! SysTick strikes the main loop again and again, some ten to some thousand instructions after the
//! last time, so that sooner or later it strikes everywhere: between the look at a word and the
//! exchange of it, beside a probe under way, in the middle of a change of quota. Both make calls,
//! take permits and tokens, and change the quota; neither waits for the other. What must hold is
//! checked all the time and at the end.
//!
//! Time is the number of interrupts: it leaps when one strikes, also between the main loop's look
//! at the clock and what it does with it.

#![no_std]
#![no_main]

mod actor;
mod watch;

use core::arch::global_asm;
use core::cell::RefCell;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use core::time::Duration;

use cortex_m::Peripherals;
use cortex_m::peripheral::syst::SystClkSource;
use cortex_m::peripheral::{SCB, SYST};
use cortex_m_rt::entry;
use cortex_m_semihosting::hprintln;
use critical_section::Mutex;
use holdoff::{
    BackoffConfig, BreakerConfig, BudgetConfig, Counters, CountersSnapshot, Instant, Limiter,
    Policy, PolicyConfig, Quota, Rate, Ratio, Upstream, valid,
};
use holdoff_embassy_qemu::succeed;
use rand_xoshiro::rand_core::Rng;

use self::actor::{Actor, Tally, User};
use self::watch::{Places, Probes};

/// What the main loop does before it is done.
const STEPS: u32 = 60_000;
/// What time leaps by when an interrupt strikes.
const LEAP: Duration = Duration::from_micros(250);
/// The longest time between two interrupts (cycles of 12 MHz; some ten instructions each).
const GAP_MAX: u32 = 128;
/// A step of the main loop that is struck as often as that hangs.
const HANGS: u32 = 10_000;

const FAST: Quota = valid!(Quota::new(Rate::per_second(1_000), 10));
const SLOW: Quota = valid!(Quota::new(Rate::per_second(300), 4));
/// Retries: so many, and one more for each so many calls.
const RESERVE: u32 = 5;
const CALLS_PER_RETRY: u32 = 10;

static UPSTREAM: Upstream = Upstream::new()
    .with_limiter(Limiter::new(FAST))
    .with_breaker(valid!(
        BreakerConfig::consecutive(2)
            .with_open_period(Duration::from_millis(1))
            .with_max_open_period(Duration::from_millis(4))
            .with_lease(Duration::from_secs(60))
            .build()
    ))
    .with_budget(valid!(BudgetConfig::new(RESERVE, Ratio::percent(100 / CALLS_PER_RETRY)).build()))
    .with_counters(Counters::new())
    .with_observer(&PROBES);

static POLICY: Policy = valid!(
    PolicyConfig::new(valid!(BackoffConfig::constant(Duration::from_micros(200)).build())).build()
);

static PROBES: Probes = Probes::new();
static HANDLER: Mutex<RefCell<Option<Actor>>> = Mutex::new(RefCell::new(None));
/// Interrupts so far.
static STRIKES: AtomicU32 = AtomicU32::new(0);
/// Interrupts in this step of the main loop.
static STRIKES_IN_STEP: AtomicU32 = AtomicU32::new(0);
/// Whether the quota is changed, too.
static CHANGES: AtomicBool = AtomicBool::new(false);

#[entry]
fn main() -> ! {
    critical_section::with(|section| {
        HANDLER.borrow_ref_mut(section).replace(Actor::new(User::Handler));
    });
    let Some(Peripherals { SYST: mut timer, .. }) = Peripherals::take() else {
        panic!("nobody has taken them before")
    };
    timer.set_clock_source(SystClkSource::Core);
    timer.enable_interrupt();
    strike_in(&mut timer, 1);
    timer.enable_counter();

    let mut main = Actor::new(User::Main);
    let mut most = 0;
    for step in 0..STEPS {
        if step == STEPS / 2 {
            cortex_m::interrupt::free(|_| check_tokens(main.tally, handler_tally()));
            CHANGES.store(true, Ordering::Relaxed);
        }
        STRIKES_IN_STEP.store(0, Ordering::Relaxed);
        main.step();
        most = most.max(STRIKES_IN_STEP.load(Ordering::Relaxed));
    }
    timer.disable_interrupt();

    let main = main.finish();
    let handler = critical_section::with(|section| HANDLER.borrow_ref_mut(section).take());
    let handler = handler.map(Actor::finish).unwrap_or_default();
    hprintln!("{} interrupts, at most {} in a step of the main loop", strikes(), most);
    hprintln!("at {} different instructions", Places::count());
    hprintln!("main: {:?}", main);
    hprintln!("handler: {:?}", handler);
    check(main, handler);
    at_rest();
    succeed()
}

fn handler_tally() -> Tally {
    critical_section::with(|section| {
        HANDLER.borrow_ref(section).as_ref().map(|actor| actor.tally).unwrap_or_default()
    })
}

/// At most the burst and the rate times the time.
fn check_tokens(main: Tally, handler: Tally) {
    let tokens = u128::from(main.tokens + handler.tokens);
    let time = now().saturating_duration_since(Instant::EPOCH);
    let most = u128::from(FAST.burst()) + time.as_nanos() / FAST.interval().as_nanos();
    hprintln!("{} tokens of at most {}", tokens, most);
    assert!(tokens <= most && tokens > most / 4);
}

/// What must hold whatever the interleaving.
fn check(main: Tally, handler: Tally) {
    check_tokens(main, handler);
    let counted = UPSTREAM.counters().map(Counters::snapshot).unwrap_or_default();
    let CountersSnapshot { opens, reopens, probes, stops, .. } = counted;
    hprintln!("breaker: {} times open, {} times again, {} probes", opens, reopens, probes);
    let calls = main.calls + handler.calls;
    let retries = main.retries + handler.retries;
    assert_eq!(counted.attempts, u64::from(calls + retries));
    assert_eq!(counted.retries, u64::from(retries));
    let most = RESERVE + calls / CALLS_PER_RETRY;
    assert!(retries <= most, "{retries} retries of {calls} calls");
    assert!(retries > most / 2 && stops.budget > 100, "the budget was hardly asked");

    // Everything that was to be met was met.
    assert!(opens > 100 && reopens > 100 && probes > 300);
    assert!(main.beside_probe > 50 && handler.beside_probe > 50);
    assert_eq!(main.changes_refused, 0, "the handler leaves no change half done");
    assert!(main.changes > 1_000 && handler.changes > 1_000);
    assert!(handler.changes_refused > 100, "no change of quota was struck");
    assert!(Places::count() > 300, "struck at few places");
}

/// Nothing is left behind: no change under way, no probe, no debt, no pause.
fn at_rest() {
    let mut now = now();
    let (Some(limiter), Some(breaker)) = (UPSTREAM.limiter(), UPSTREAM.breaker()) else {
        panic!("both are there")
    };
    assert_eq!(PROBES.under_way(), 0);
    assert_eq!(limiter.set_quota(now, SLOW), Ok(()));
    now = now.saturating_add(Duration::from_secs(1));
    assert_eq!(limiter.available(now), SLOW.burst());
    for _ in 0..3 {
        match breaker.try_acquire(now) {
            Ok(permit) => {
                let is_probe = permit.is_probe();
                assert!(!is_probe || breaker.try_acquire(now).is_err(), "a probe beside a probe");
                permit.success(now, || 0);
            }
            Err(open) => panic!("{open}"),
        }
    }
    let level = UPSTREAM.budget().map_or(0, |budget| budget.level(now));
    let left = (0..1_000).filter(|_| UPSTREAM.budget().is_some_and(|b| b.withdraw(now).is_ok()));
    assert_eq!(left.count(), level as usize);
}

fn now() -> Instant {
    Instant::EPOCH.saturating_add(LEAP.saturating_mul(strikes()))
}

fn strikes() -> u32 {
    STRIKES.load(Ordering::Relaxed)
}

/// Makes SysTick strike once more after `cycles`.
fn strike_in(timer: &mut SYST, cycles: u32) {
    timer.set_reload(cycles);
    timer.clear_current();
    SCB::clear_pendst();
}

// Hands on what the core has put on the stack: r0 to r3, r12, lr, and where it was.
global_asm!(
    ".global SysTick",
    ".type SysTick, %function",
    ".thumb_func",
    "SysTick:",
    "mrs r0, msp",
    "b on_strike",
);

/// # Safety
/// To be called by the core only, by way of the lines above.
#[unsafe(no_mangle)]
unsafe extern "C" fn on_strike(frame: *const [u32; 8]) {
    // SAFETY: it points to what the core has just pushed.
    Places::add(unsafe { (*frame)[6] });
    STRIKES.store(strikes() + 1, Ordering::Relaxed);
    let in_step = STRIKES_IN_STEP.load(Ordering::Relaxed) + 1;
    STRIKES_IN_STEP.store(in_step, Ordering::Relaxed);
    assert!(in_step < HANGS, "the main loop hangs");

    critical_section::with(|section| {
        if let Some(actor) = HANDLER.borrow_ref_mut(section).as_mut() {
            actor.step();
            let gap = 1 + actor.random.next_u32() % GAP_MAX;
            // SAFETY: the main loop uses its control register only, and this all others.
            let mut timer = unsafe { Peripherals::steal() }.SYST;
            strike_in(&mut timer, gap);
        }
    });
}

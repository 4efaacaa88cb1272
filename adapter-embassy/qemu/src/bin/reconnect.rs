//! Four devices keep a link to a broker that accepts everybody and throws them out after 50 ms.
//!
//! Twenty times; then it bears each for 31 s, and throws it out again. One device waits without
//! jitter, 1 s doubling up to 60 s, and from 1 s again after the long session only. Two with jitter
//! do not come together; one that has the id of another waits as long as that.

#![no_std]
#![no_main]

use core::cell::RefCell;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;

use cortex_m::Peripherals;
use cortex_m_rt::{entry, exception};
use cortex_m_semihosting::{hprint, hprintln};
use critical_section::Mutex;
use embassy_executor::Spawner;
use embassy_time::Timer;
use heapless::Vec;
use holdoff_embassy::{Backoff, BackoffConfig, Jitter, Random, Reconnect, valid};
use holdoff_embassy_qemu::{executor, succeed, systick};

/// Of the clock (ms).
const STEP: u16 = 10;
const BASE: u64 = 1_000;
const CAP: u64 = 60_000;
const STABLE: Duration = Duration::from_secs(30);
/// How long the broker bears a device (ms), session by session: thrown out 20 times, once not, and
/// once more.
const SESSIONS: [u64; 22] = {
    let mut sessions = [50; 22];
    sessions[20] = 31_000;
    sessions
};
/// What is waited after each but the last (s).
const WAITS: [u64; 21] =
    [1, 2, 4, 8, 16, 32, 60, 60, 60, 60, 60, 60, 60, 60, 60, 60, 60, 60, 60, 60, 1];

/// Name, jitter, and id.
const DEVICES: [(&str, Jitter, &[u8]); 4] = [
    ("no jitter", Jitter::None, b"sensor 0"),
    ("sensor 1", Jitter::Equal, b"sensor 1"),
    ("sensor 2", Jitter::Equal, b"sensor 2"),
    ("sensor 1 again", Jitter::Equal, b"sensor 1"),
];

/// From the end of each session to the next (ms).
type Series = Vec<u64, { WAITS.len() }>;

static SERIES: Mutex<RefCell<[Series; 4]>> = Mutex::new(RefCell::new([const { Vec::new() }; 4]));
static DONE: AtomicUsize = AtomicUsize::new(0);

#[entry]
fn main() -> ! {
    let Some(peripherals) = Peripherals::take() else { panic!("nobody has taken them before") };
    systick::start(peripherals.SYST, STEP);
    executor::run(spawn)
}

fn spawn(spawner: Spawner) {
    for device in 0..DEVICES.len() {
        match keep_connected(device) {
            Ok(task) => spawner.spawn(task),
            Err(error) => panic!("{error:?}"),
        }
    }
}

#[exception]
fn SysTick() {
    systick::on_tick();
}

#[embassy_executor::task(pool_size = 4)]
async fn keep_connected(device: usize) {
    let (_, jitter, id) = DEVICES[device];
    let mut random = Random::from_device_id(id);
    let mut link = Reconnect::new(backoff(jitter), STABLE, &mut random);
    let mut lost_at = None;
    for session in SESSIONS {
        link.ready().await;
        if let Some(lost_at) = lost_at {
            add(device, systick::now() - lost_at);
        }
        link.connected(); // The broker accepts everybody.
        Timer::after_millis(session).await;
        lost_at = Some(systick::now());
    }
    if DONE.fetch_add(1, Ordering::Relaxed) + 1 == DEVICES.len() {
        report();
        succeed()
    }
}

const fn backoff(jitter: Jitter) -> Backoff {
    const PLAIN: BackoffConfig = BackoffConfig::exponential(Duration::from_millis(BASE))
        .with_max_delay(Duration::from_millis(CAP));
    match jitter {
        Jitter::None => valid!(PLAIN.with_jitter(Jitter::None).build()),
        _ => valid!(PLAIN.with_jitter(Jitter::Equal).build()),
    }
}

fn add(device: usize, wait: u64) {
    let is_in =
        critical_section::with(|section| SERIES.borrow_ref_mut(section)[device].push(wait).is_ok());
    assert!(is_in, "one wait between two sessions");
}

fn report() {
    let series = critical_section::with(|section| SERIES.borrow_ref(section).clone());
    for ((name, ..), series) in DEVICES.iter().zip(&series) {
        hprint!("{}:", name);
        for &wait in series {
            let tenths = (wait + 50) / 100;
            match tenths % 10 {
                0 => hprint!(" {}", tenths / 10),
                tenth => hprint!(" {}.{}", tenths / 10, tenth),
            }
        }
        hprintln!(" s");
    }
    check(&series);
}

fn check([plain, one, two, again]: &[Series; 4]) {
    assert_eq!(**plain, WAITS.map(|secs| secs * 1_000));
    for series in [one, two] {
        for (wait, longest) in series.iter().zip(plain) {
            // Half of it at least, and rounded up to a step.
            let bounds = longest / 2..longest + u64::from(STEP);
            assert!(bounds.contains(wait), "{wait} ms of {longest}");
        }
    }
    assert_eq!(one, again, "the same id waits the same");
    let together = one.iter().zip(two).filter(|(one, two)| one == two).count();
    assert!(together <= 2, "two devices come together");
}

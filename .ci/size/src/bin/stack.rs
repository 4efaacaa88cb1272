//! How much stack the polls of one guarded call need beyond those of its operation, printed from
//! QEMU: the stack is painted, a future polled to its end, and what is left of the paint looked
//! for. What a future holds between polls is in the future, whose size is printed, too.

#![no_main]
#![no_std]

use core::cell::Cell;
use core::future::Future;
use core::panic::PanicInfo;
use core::pin::{Pin, pin};
use core::ptr::{read_volatile, write_volatile};
use core::task::{Context, Poll, Waker};

use cortex_m::register::msp;
use cortex_m_rt::entry;
use cortex_m_semihosting::{debug, syscall1};
use holdoff::drive::{self, NoQueue};
use holdoff::{
    BreakerConfig, BudgetConfig, Clock, Failure, Hint, Instant, Limiter, Policy, Quota, Rate,
    Ratio, Safety, Timer, Upstream, classified, valid,
};
use size::{input, sample};

#[entry]
fn main() -> ! {
    let time = Virtual(Cell::new(Instant::EPOCH));
    let (mut bare, mut guarded, mut future) = (0, 0, 0);
    // Success, failures with and without a hint, waits at the limiter, a breaker that trips, and
    // probes; until everything has happened.
    for number in 0..100 {
        let answers = Answers { left: number % 7, kind: number };
        {
            let operation = pin!(async {
                input(Operation { is_sent: false, answer: answers.next().0 }.await.is_ok());
            });
            bare = depth(operation).max(bare);
        }
        let call = pin!(guarded_call(&time, answers));
        future = size_of_val(&*call);
        guarded = depth(call).max(guarded);
    }
    print(c"bare ", bare);
    print(c"guarded ", guarded);
    print(c"future ", future);
    print(c"operation ", size_of::<Operation>());
    debug::exit(debug::EXIT_SUCCESS);
    loop {}
}

async fn guarded_call(time: &Virtual, mut answers: Answers) {
    static POLICY: Policy = Policy::INTERACTIVE;
    static UPLINK: Upstream = Upstream::new()
        .with_limiter(Limiter::new(valid!(Quota::new(Rate::per_second(10), 20))))
        .with_breaker(valid!(BreakerConfig::consecutive(2).build()))
        .with_budget(valid!(BudgetConfig::new(5, Ratio::percent(10)).build()));
    let answer = drive::run(
        time,
        &NoQueue,
        |now| UPLINK.call(&POLICY, Safety::Idempotent, now),
        sample,
        classified,
        |_| {
            let answer;
            (answer, answers) = answers.next();
            Operation { is_sent: false, answer }
        },
    )
    .await;
    input(answer.is_ok());
}

/// What the service answers: so many failures, and then success.
#[derive(Clone, Copy)]
struct Answers {
    left: u32,
    kind: u32,
}

impl Answers {
    fn next(self) -> (Result<u32, Failure>, Self) {
        let failure = match self.kind % 3 {
            0 => Failure::transient(),
            1 => Failure::throttled(),
            _ => Failure::throttled().with_hint(Hint::after(core::time::Duration::from_secs(1))),
        };
        let answer = if self.left > 0 { Err(failure) } else { Ok(self.kind) };
        (answer, Self { left: self.left.saturating_sub(1), ..self })
    }
}

/// A request and its answer, which is there at the second poll.
struct Operation {
    is_sent: bool,
    answer: Result<u32, Failure>,
}

impl Future for Operation {
    type Output = Result<u32, Failure>;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        if core::mem::replace(&mut self.is_sent, true) {
            Poll::Ready(input(self.answer))
        } else {
            Poll::Pending
        }
    }
}

/// Virtual time, which passes when there is a wait.
struct Virtual(Cell<Instant>);

impl Clock for Virtual {
    fn now(&self) -> Instant {
        self.0.get()
    }
}

impl Timer for Virtual {
    fn sleep_until(&self, deadline: Instant) -> impl Future<Output = ()> {
        Sleep { time: self, deadline, is_asked: false }
    }
}

struct Sleep<'a> {
    time: &'a Virtual,
    deadline: Instant,
    is_asked: bool,
}

impl Future for Sleep<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        // An attempt's timeout is asked once, while it is in flight, and a wait twice.
        if core::mem::replace(&mut self.is_asked, true) {
            self.time.0.set(self.time.0.get().max(self.deadline));
        }
        if self.deadline <= self.time.now() { Poll::Ready(()) } else { Poll::Pending }
    }
}

const PAINT: u32 = 0x5afe_57ac;

/// The stack that polling `future` to its end needs, in bytes.
#[inline(never)]
fn depth(mut future: Pin<&mut dyn Future<Output = ()>>) -> usize {
    unsafe extern "C" {
        static mut _stack_end: u32;
    }
    let end = &raw mut _stack_end;
    let top = msp::read() as *mut u32;
    // SAFETY: between the end of the stack and its pointer nothing is kept; nothing interrupts,
    // and painting calls nothing.
    unsafe {
        let mut place = end;
        while place < top {
            write_volatile(place, PAINT);
            place = place.add(1);
        }
    }
    while future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {}
    let mut place = end;
    // SAFETY: as before.
    while place < top && unsafe { read_volatile(place) } == PAINT {
        place = place.wrapping_add(1);
    }
    top as usize - place as usize
}

fn print(name: &core::ffi::CStr, number: usize) {
    let mut digits = *b"000000\n\0";
    let mut rest = number;
    for digit in digits[..6].iter_mut().rev() {
        *digit += (rest % 10) as u8;
        rest /= 10;
    }
    // SAFETY: both end with a zero and are only read.
    unsafe {
        syscall1!(WRITE0, name.as_ptr());
        syscall1!(WRITE0, digits.as_ptr());
    }
}

/// A future that is polled after its end panics: the compiler's, in each `async fn`.
#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    debug::exit(debug::EXIT_FAILURE);
    loop {}
}

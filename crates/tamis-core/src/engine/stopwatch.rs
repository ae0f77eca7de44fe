//! Measures how long matching one event takes, at a fraction of the cost of a small event.
//!
//! Reading the system clock takes 40 ns on the machines we measure on, so two reads were an eighth of a call
//! that finds nothing. Reading the processor's counter takes a fifth of that. It is used if the processor
//! reports a constant rate. The rate is learnt from the clock, which is used until then.
//!
//! `unsafe` is here for one instruction, which every processor of that architecture has.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::fork::get_or_init;

/// How long the counter is compared with the clock before its rate counts as known.
const LEARNT_AFTER: Duration = Duration::from_millis(10);

/// Nanoseconds per tick, times 2^32; 0 as long as it is not known.
static RATE: AtomicU64 = AtomicU64::new(0);

/// A measurement under way. It may end on another thread: the counters of one machine run together.
#[derive(Clone, Copy)]
pub(super) enum Stopwatch {
    Ticks { start: u64, rate: u64 },
    Clock(Instant),
}

impl Stopwatch {
    #[inline]
    pub fn start() -> Self {
        match RATE.load(Ordering::Relaxed) {
            0 => Self::with_clock(),
            rate => Self::Ticks { start: ticks(), rate },
        }
    }

    #[inline]
    pub fn nanoseconds(self) -> u64 {
        match self {
            // A counter that goes backwards, as after a machine was moved, counts as no time.
            Self::Ticks { start, rate } => scaled(ticks().saturating_sub(start), rate),
            Self::Clock(start) => start.elapsed().as_nanos() as u64,
        }
    }

    #[cold]
    fn with_clock() -> Self {
        /// When both were first looked at; `None` if the counter is not to be trusted.
        static FIRST: OnceLock<Option<(Instant, u64)>> = OnceLock::new();
        if let Some((first, start)) = get_or_init(&FIRST, || is_steady().then(both)) {
            let (now, count) = both();
            let (time, passed) = (now.duration_since(*first), count.saturating_sub(*start).max(1));
            if time >= LEARNT_AFTER {
                let rate = (time.as_nanos() << 32) / u128::from(passed);
                RATE.store(u64::try_from(rate).unwrap_or(0), Ordering::Relaxed);
            }
        }
        Self::Clock(Instant::now())
    }
}

/// The clock and the counter at one moment: of a few looks, the one that was interrupted least.
fn both() -> (Instant, u64) {
    let looks = (0..4).map(|_| {
        let (before, now, after) = (ticks(), Instant::now(), ticks());
        (after.saturating_sub(before), now, before)
    });
    looks
        .min_by_key(|(took, ..)| *took)
        .map_or_else(|| (Instant::now(), ticks()), |(_, now, count)| (now, count))
}

#[inline]
fn scaled(ticks: u64, rate: u64) -> u64 {
    ((u128::from(ticks) * u128::from(rate)) >> 32) as u64
}

/// Whether the counter runs at one rate, in every state of the processor.
#[cfg(target_arch = "x86_64")]
fn is_steady() -> bool {
    use std::arch::x86_64::__cpuid;
    const POWER_MANAGEMENT: u32 = 0x8000_0007;
    const INVARIANT: u32 = 1 << 8;
    __cpuid(0x8000_0000).eax >= POWER_MANAGEMENT && __cpuid(POWER_MANAGEMENT).edx & INVARIANT != 0
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn ticks() -> u64 {
    // SAFETY: every processor of this architecture has the instruction.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
fn is_steady() -> bool {
    false
}

#[cfg(not(target_arch = "x86_64"))]
fn ticks() -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both ways to measure agree, before and after the rate is known.
    #[test]
    fn it_measures_what_the_clock_measures() {
        for _ in 0..3 {
            let (clock, watch) = (Instant::now(), Stopwatch::start());
            std::thread::sleep(LEARNT_AFTER);
            // The clock was looked at first and is looked at last: its time is longer.
            let measured = watch.nanoseconds();
            let longest = clock.elapsed().as_nanos() as u64;
            let least = LEARNT_AFTER.as_nanos() as u64;
            assert!(measured >= least / 100 * 99 && measured <= longest / 100 * 101, "{measured} {longest}");
        }
        assert!(!is_steady() || RATE.load(Ordering::Relaxed) > 0);
    }

    #[test]
    fn long_times_do_not_overflow() {
        let year = 365 * 24 * 3_600 * 1_000_000_000u64;
        assert_eq!(scaled(year, 1 << 32), year);
        assert_eq!(scaled(year, 1 << 31), year / 2);
    }
}

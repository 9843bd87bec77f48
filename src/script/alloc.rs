//! The counting allocator behind the memory budget. The binary installs it; an embedder may.
//! Counts are per thread, so a budget is only as wide as one call: see `control`.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::OnceLock;

/// What an allocation takes beside the bytes it was asked for. It also keeps values that nest without end, which are
/// small and need stack to drop, inside what `pool::STACK` bears.
const EACH: i64 = 32;

/// What one thread holds, in bytes.
struct Held {
    /// Allocated minus freed. May be negative where it frees for others.
    live: Cell<i64>,
    peak: Cell<i64>,
}

thread_local! {
    // One object: every allocation finds it, so finding it twice would be felt.
    static HELD: Held = const { Held { live: Cell::new(0), peak: Cell::new(0) } };
}

/// A global allocator that counts bytes per thread on top of the system's.
///
/// ```
/// #[global_allocator]
/// static ALLOC: lapidary::CountingAllocator = lapidary::CountingAllocator;
/// # fn main() {}
/// ```
pub struct CountingAllocator;

// SAFETY: every method hands the same layout to `System` and only counts beside it; the counters are
// `const`-initialised thread-locals of a type without a destructor, so counting never allocates.
unsafe impl GlobalAlloc for CountingAllocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64 + EACH);
        // SAFETY: the caller's contract is the system allocator's.
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64 + EACH);
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }
    #[inline]
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        count(-(layout.size() as i64 + EACH));
        // SAFETY: as above.
        unsafe { System.dealloc(ptr, layout) }
    }
    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(new_size as i64 - layout.size() as i64);
        // SAFETY: as above.
        unsafe { System.realloc(ptr, layout, new_size) }
    }
}

#[inline]
fn count(bytes: i64) {
    // `try_with`: a thread that is being torn down still frees.
    let _ = HELD.try_with(|held| {
        let now = held.live.get() + bytes;
        held.live.set(now);
        if now > held.peak.get() {
            held.peak.set(now);
        }
    });
}

/// Bytes this thread holds now, or 0 where the allocator is not installed.
#[inline]
#[must_use]
pub fn live() -> i64 {
    HELD.with(|held| held.live.get())
}

/// The highest [`live`] since [`reset_peak`].
#[must_use]
pub fn peak() -> i64 {
    HELD.with(|held| held.peak.get())
}

/// Starts a new peak at the present height and returns the old one.
pub fn reset_peak() -> i64 {
    HELD.with(|held| held.peak.replace(held.live.get()))
}

/// Gives back the peak of an outer budget when an inner one ends.
pub fn restore_peak(outer: i64) {
    HELD.with(|held| held.peak.set(held.peak.get().max(outer)));
}

/// Runs work whose allocations outlast the call on this thread and belong to the host: the call's budget does not count them.
pub fn uncharged<T>(work: impl FnOnce() -> T) -> T {
    let (live, peak) = HELD.with(|held| (held.live.get(), held.peak.get()));
    let out = work();
    HELD.with(|held| {
        held.live.set(live);
        held.peak.set(peak);
    });
    out
}

/// Forgets what was allocated and freed since [`live`] was `at`.
pub fn settle(at: i64) {
    HELD.with(|held| held.live.set(at));
}

/// Whether the counting allocator is installed in this process; probed once.
#[must_use]
pub fn is_installed() -> bool {
    static PROBE: OnceLock<bool> = OnceLock::new();
    *PROBE.get_or_init(|| {
        let before = live();
        let probe = std::hint::black_box(vec![0_u8; 4096]);
        let counted = live() - before >= 4096;
        drop(probe);
        counted
    })
}

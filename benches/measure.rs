//! How the benches measure: on CPU time, floor and host in turns, so that a busy machine slows both alike.
//! It knows clocks and ratios and nothing of the host.
use criterion::Criterion;
use criterion::Throughput;
use criterion::measurement::{Measurement, ValueFormatter};
use lapidary::script::pool;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The program's allocator counts bytes; a floor does not. Which of both a thread uses now is its own choice.
pub struct Allocator;

thread_local! {
    static BARE: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work` as a program without a counting allocator would.
pub fn bare<T>(work: impl FnOnce() -> T) -> T {
    BARE.set(true);
    let out = work();
    BARE.set(false);
    out
}

/// From now on no thread of this process counts: it stands for another program.
pub fn bare_for_good() {
    FOREIGN.store(true, Ordering::Relaxed);
}

static FOREIGN: AtomicBool = AtomicBool::new(false);

fn is_bare() -> bool {
    BARE.try_with(Cell::get).unwrap_or(true) || FOREIGN.load(Ordering::Relaxed)
}

// SAFETY: both allocators hand every request on to `System` with the same layout, so either may free what the other gave.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract is the inner allocator's.
        unsafe { if is_bare() { System.alloc(layout) } else { lapidary::CountingAllocator.alloc(layout) } }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        unsafe {
            if is_bare() { System.alloc_zeroed(layout) } else { lapidary::CountingAllocator.alloc_zeroed(layout) }
        }
    }
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe {
            if is_bare() { System.dealloc(ptr, layout) } else { lapidary::CountingAllocator.dealloc(ptr, layout) }
        }
    }
    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above.
        unsafe {
            if is_bare() {
                System.realloc(ptr, layout, size)
            } else {
                lapidary::CountingAllocator.realloc(ptr, layout, size)
            }
        }
    }
}

fn clock(id: libc::clockid_t) -> Duration {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `t` is a valid place for the answer; a clock that does not exist leaves it zero.
    unsafe { libc::clock_gettime(id, &mut t) };
    Duration::new(t.tv_sec.unsigned_abs(), u32::try_from(t.tv_nsec).unwrap_or(0))
}

/// CPU time that this thread has used.
pub fn thread_cpu() -> Duration {
    clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// CPU time that all threads of this process have used.
pub fn process_cpu() -> Duration {
    clock(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// CPU time of the measuring thread, for criterion.
pub struct ThreadCpu;

impl Measurement for ThreadCpu {
    type Intermediate = Duration;
    type Value = Duration;
    fn start(&self) -> Duration {
        thread_cpu()
    }
    fn end(&self, start: Duration) -> Duration {
        thread_cpu() - start
    }
    fn add(&self, a: &Duration, b: &Duration) -> Duration {
        *a + *b
    }
    fn zero(&self) -> Duration {
        Duration::ZERO
    }
    fn to_f64(&self, value: &Duration) -> f64 {
        value.as_nanos() as f64
    }
    fn formatter(&self) -> &dyn ValueFormatter {
        &Nanoseconds
    }
}

struct Nanoseconds;

impl ValueFormatter for Nanoseconds {
    fn scale_values(&self, typical: f64, values: &mut [f64]) -> &'static str {
        let (by, unit) = match typical {
            t if t < 1e3 => (1.0, "ns"),
            t if t < 1e6 => (1e-3, "µs"),
            t if t < 1e9 => (1e-6, "ms"),
            _ => (1e-9, "s"),
        };
        values.iter_mut().for_each(|v| *v *= by);
        unit
    }
    fn scale_throughputs(&self, _: f64, throughput: &Throughput, values: &mut [f64]) -> &'static str {
        let (Throughput::Elements(n) | Throughput::Bytes(n)) = throughput else { return "ns" };
        values.iter_mut().for_each(|v| *v = *n as f64 * 1e9 / *v);
        "/s"
    }
    fn scale_for_machines(&self, _: &mut [f64]) -> &'static str {
        "ns"
    }
}

/// Criterion on CPU time, short: the machine is shared.
pub fn criterion() -> Criterion<ThreadCpu> {
    Criterion::default()
        .with_measurement(ThreadCpu)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
        .sample_size(30)
        .configure_from_args()
}

/// Whether numbers are wanted, or only that the bench still runs.
pub fn is_measuring() -> bool {
    std::env::args().any(|a| a == "--bench")
}

/// Whether the command line asks for the bench `name`, by the first part of a filter or by none.
pub fn is_wanted(name: &str) -> bool {
    let mut filters = std::env::args().skip(1).filter(|a| !a.starts_with('-')).peekable();
    filters.peek().is_none() || filters.any(|f| f.split('/').next() == Some(name))
}

/// Runs `work` on a thread with the stack that scripts need, as a door's own reader is one, and waits for it.
pub fn on_a_call_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    pool::spawn("bench", work).expect("a thread starts").join().expect("the bench runs")
}

/// `n`, or fewer where BENCH_MOST says so (a profiler is slow), or 1 where only a run is wanted.
pub fn rounds(n: usize) -> usize {
    if !is_measuring() {
        return 1;
    }
    std::env::var("BENCH_MOST").ok().and_then(|most| most.parse().ok()).map_or(n, |most: usize| n.min(most.max(1)))
}

/// The value at `part` (0 to 1) of a list.
pub fn quantile(values: &mut [f64], part: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    values.get((last as f64 * part).round() as usize).copied().unwrap_or(f64::NAN)
}

/// The middle of a list.
pub fn median(values: &mut [f64]) -> f64 {
    quantile(values, 0.5)
}

/// A measured value and its limit, as one line.
pub fn value(name: &str, value: f64, unit: &str, limit: f64) {
    println!("{name} = {value:.2} {unit} (limit {limit:.2} {unit})");
}

/// What is set against what.
pub struct Pair<'a> {
    /// Both names, such as `dispatch/bare`.
    pub name: &'a str,
    /// The most that the ratio should be.
    pub limit: f64,
    /// How many rounds; each measures both sides once.
    pub rounds: usize,
    /// What one measure counts, to print time for one.
    pub of: usize,
}

/// Runs floor and host in turns and prints the median of the rounds' ratios. Each side returns the time that it took.
pub fn ratio(pair: &Pair, mut floor: impl FnMut() -> Duration, mut host: impl FnMut() -> Duration) -> f64 {
    floor();
    host();
    let (mut floors, mut hosts, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds(pair.rounds) {
        // Whoever comes second finds warm caches: they take turns in that too.
        let (f, h) = if round % 2 == 0 {
            let f = floor();
            (f, host())
        } else {
            let h = host();
            (floor(), h)
        };
        let (f, h) = (f.as_secs_f64(), h.as_secs_f64());
        floors.push(f * 1e6 / pair.of as f64);
        hosts.push(h * 1e6 / pair.of as f64);
        ratios.push(h / f);
    }
    let (low, high) = (quantile(&mut ratios, 0.1), quantile(&mut ratios, 0.9));
    let middle = median(&mut ratios);
    println!(
        "ratio {} = {middle:.2} (limit {:.2}); host {:.2} µs, floor {:.2} µs; 10 % to 90 % of {} rounds: {low:.2} to {high:.2}",
        pair.name,
        pair.limit,
        median(&mut hosts),
        median(&mut floors),
        ratios.len(),
    );
    middle
}

/// CPU time that `work` takes on this thread.
pub fn timed(work: impl FnOnce()) -> Duration {
    let start = thread_cpu();
    work();
    thread_cpu() - start
}

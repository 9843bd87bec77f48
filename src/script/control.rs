//! The budgets of one call: deadline, cancel, operations, memory. All are on by default.
//! One flag is read at every operation; a timer thread raises it at the deadline, a caller to cancel.

use super::{alloc, pool};
use crate::base::error::{Error, Kind, Result};
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::thread::Thread;
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// What a call may use. The numbers are script-api.md section 8's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Wall clock; waiting for a person does not count.
    pub deadline: Duration,
    /// Script operations.
    pub operations: u64,
    /// Bytes of script values.
    pub memory: u64,
}

impl Budget {
    /// A tool call: 30 s, 50 million operations, 64 MiB.
    pub const CALL: Budget = Budget { deadline: Duration::from_secs(30), operations: 50_000_000, memory: 64 << 20 };
    /// A file's top level and `get_tools`: 2 s.
    pub const LOAD: Budget = Budget { deadline: Duration::from_secs(2), operations: 50_000_000, memory: 64 << 20 };
    /// `shutdown`: 2 s.
    pub const SHUTDOWN: Budget = Budget { deadline: Duration::from_secs(2), operations: 50_000_000, memory: 64 << 20 };
}

impl Default for Budget {
    fn default() -> Self {
        Budget::CALL
    }
}

/// Why a call was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Stop {
    /// Nobody stopped it.
    No = 0,
    /// The deadline passed.
    Deadline = 1,
    /// The caller took it back.
    Cancel = 2,
    /// The memory budget is used up.
    Memory = 3,
    /// The operation budget is used up.
    Operations = 4,
}

/// The handle of one running call: who wants to stop it holds this.
#[derive(Debug)]
pub struct Control {
    stop: AtomicU8,
    /// Milliseconds after `epoch()`; 0 means none.
    deadline_ms: AtomicU64,
    budget: Budget,
    /// The outermost one's is used by all calls nested in it, so that stopping it wakes the innermost.
    wake: Notify,
    parent: Option<Arc<Control>>,
    /// Operations the call has used, written when it ends or waits.
    used: AtomicU64,
}

fn epoch() -> Instant {
    static EPOCH: OnceLock<Instant> = OnceLock::new();
    *EPOCH.get_or_init(Instant::now)
}

fn now_ms() -> u64 {
    u64::try_from(epoch().elapsed().as_millis()).unwrap_or(u64::MAX)
}

impl Control {
    /// A control whose deadline starts to run now. The deadline stops it while it is in force: see [`enter`].
    #[must_use]
    pub fn start(budget: Budget) -> Arc<Self> {
        Control::build(budget, None)
    }

    /// A control for a call made inside another: whatever stops the outer one stops it too.
    #[must_use]
    pub fn nested(budget: Budget, parent: &Arc<Control>) -> Arc<Self> {
        Control::build(budget, Some(parent.clone()))
    }

    fn build(budget: Budget, parent: Option<Arc<Control>>) -> Arc<Self> {
        let ms = u64::try_from(budget.deadline.as_millis()).unwrap_or(u64::MAX);
        Arc::new(Control {
            stop: AtomicU8::new(0),
            deadline_ms: AtomicU64::new(now_ms().saturating_add(ms).max(1)),
            budget,
            wake: Notify::new(),
            parent,
            used: AtomicU64::new(0),
        })
    }

    fn wake(&self) -> &Notify {
        self.parent.as_ref().map_or(&self.wake, |parent| parent.wake())
    }

    /// Stops the call at its next operation or host call. The first reason stays.
    pub fn stop(&self, why: Stop) {
        let _ = self.stop.compare_exchange(0, why as u8, Ordering::AcqRel, Ordering::Acquire);
        self.wake().notify_waiters();
    }

    /// Cancels the call.
    pub fn cancel(&self) {
        self.stop(Stop::Cancel);
    }

    /// Why it was stopped, or [`Stop::No`].
    #[must_use]
    pub fn stopped(&self) -> Stop {
        match self.stop.load(Ordering::Acquire) {
            0 => self.parent.as_ref().map_or(Stop::No, |parent| parent.stopped()),
            1 => Stop::Deadline,
            2 => Stop::Cancel,
            3 => Stop::Memory,
            _ => Stop::Operations,
        }
    }

    /// The budget this call started with.
    #[must_use]
    pub fn budget(&self) -> Budget {
        self.budget
    }

    /// Wall clock left until the deadline.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        Duration::from_millis(self.deadline_ms.load(Ordering::Acquire).saturating_sub(now_ms()))
    }

    /// Gives time back: a wait for a person does not count.
    pub fn extend(&self, by: Duration) {
        let ms = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
        let _ = self.deadline_ms.fetch_update(Ordering::AcqRel, Ordering::Acquire, |d| Some(d.saturating_add(ms)));
    }

    /// As [`Control::extend`], for time that has passed already: a deadline that ran out in it has not.
    pub fn give_back(&self, span: Duration) {
        self.extend(span);
        if !self.remaining().is_zero() {
            let _ = self.stop.compare_exchange(Stop::Deadline as u8, 0, Ordering::AcqRel, Ordering::Acquire);
        }
        if let Some(parent) = &self.parent {
            parent.give_back(span);
        }
    }

    /// Operations used so far, as of the last wait or the end.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.used.load(Ordering::Acquire)
    }

    /// The failure that belongs to the reason this call was stopped.
    #[must_use]
    pub fn error(&self) -> Error {
        if let Some(parent) = self.parent.as_ref().filter(|p| p.stopped() != Stop::No) {
            return parent.error();
        }
        let budget = self.budget;
        match self.stopped() {
            Stop::No | Stop::Cancel => Error::new(Kind::Cancelled, "the call was cancelled"),
            Stop::Deadline => {
                Error::new(Kind::Timeout, format!("the call passed its deadline of {} s", seconds(budget.deadline)))
                    .hint(if budget.deadline == Budget::LOAD.deadline {
                        "the top level, get_tools() and shutdown() have 2 s, which no setting raises; a tool may raise `timeout_s`"
                    } else {
                        "raise `limits.timeout_s` of the plugin (or `timeout_s` of the tool), or do less in one call"
                    })
            }
            Stop::Memory => {
                Error::new(Kind::Quota, format!("the call passed its memory budget of {} MiB", budget.memory >> 20))
                    .hint("raise `limits.memory_mb` of the plugin, or build less at once")
            }
            Stop::Operations => {
                Error::new(Kind::Quota, format!("the call passed its budget of {} operations", budget.operations))
                    .hint("raise `limits.operations` of the plugin, or use a native function for the heavy part")
            }
        }
    }

    /// Runs a future to its end from a call thread, or ends with the call's own stop or deadline.
    ///
    /// # Errors
    /// The call's [`Control::error`] when it is stopped first; the future's own error otherwise.
    pub fn wait<T>(&self, runtime: &tokio::runtime::Handle, future: impl Future<Output = Result<T>>) -> Result<T> {
        CURRENT.with(|c| self.used.store(c.operations.get(), Ordering::Release));
        runtime.block_on(async {
            let stopped = async {
                loop {
                    let notified = self.wake().notified();
                    tokio::pin!(notified);
                    notified.as_mut().enable();
                    if self.stopped() != Stop::No {
                        break;
                    }
                    notified.await;
                }
            };
            tokio::select! {
                biased;
                () = stopped => Err(self.error()),
                out = future => out,
            }
        })
    }

    /// Waits `span`, or less when the call is stopped.
    ///
    /// # Errors
    /// The call's [`Control::error`] when it is stopped first.
    pub fn sleep(&self, runtime: &tokio::runtime::Handle, span: Duration) -> Result<()> {
        self.wait(runtime, async move {
            tokio::time::sleep(span).await;
            Ok(())
        })
    }
}

/// Seconds without a needless fraction.
fn seconds(d: Duration) -> String {
    let s = d.as_secs_f64();
    if s.fract() == 0.0 { format!("{s:.0}") } else { format!("{s}") }
}

/// The controls in force on one thread, outermost first. The thread and the timer share it; they seldom meet.
type InForce = Mutex<Vec<Arc<Control>>>;

/// Raises the deadline flags. One thread, parked while nothing runs.
struct Timer {
    threads: Mutex<Vec<Weak<InForce>>>,
    parked: AtomicBool,
    thread: OnceLock<Thread>,
}

thread_local! {
    static IN_FORCE: Arc<InForce> = Timer::get().join();
}

impl Timer {
    fn get() -> &'static Timer {
        static TIMER: OnceLock<&'static Timer> = OnceLock::new();
        TIMER.get_or_init(|| {
            let timer: &'static Timer = Box::leak(Box::new(Timer {
                threads: Mutex::new(Vec::new()),
                parked: AtomicBool::new(false),
                thread: OnceLock::new(),
            }));
            let spawned = std::thread::Builder::new()
                .name("lapidary-timer".into())
                .stack_size(128 << 10)
                .spawn(move || timer.run());
            if let Ok(handle) = spawned {
                let _ = timer.thread.set(handle.thread().clone());
            }
            timer
        })
    }

    fn join(&self) -> Arc<InForce> {
        let in_force = Arc::default();
        self.threads.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(&in_force));
        in_force
    }

    fn wake(&self) {
        if self.parked.load(Ordering::Acquire)
            && self.parked.swap(false, Ordering::AcqRel)
            && let Some(thread) = self.thread.get()
        {
            thread.unpark();
        }
    }

    fn run(&self) {
        loop {
            // Said before looking: who comes after the look finds it said and wakes this thread, who came before is seen.
            self.parked.store(true, Ordering::Release);
            if self.look() {
                self.parked.store(false, Ordering::Release);
                std::thread::park_timeout(Duration::from_millis(10));
            } else {
                std::thread::park();
            }
        }
    }

    /// Stops what has passed its deadline; tells whether anything is in force.
    fn look(&self) -> bool {
        let now = now_ms();
        let mut any = false;
        self.threads.lock().unwrap_or_else(PoisonError::into_inner).retain(|thread| {
            let Some(in_force) = thread.upgrade() else { return false };
            for control in &*in_force.lock().unwrap_or_else(PoisonError::into_inner) {
                any = true;
                if control.deadline_ms.load(Ordering::Acquire) <= now {
                    control.stop(Stop::Deadline);
                }
            }
            true
        });
        any
    }
}

struct Current {
    control: RefCell<Option<Arc<Control>>>,
    /// Operations counted on this thread for the outermost running call.
    operations: Cell<u64>,
    operations_cap: Cell<u64>,
    memory_cap: Cell<i64>,
    /// Whose budgets the caps are: a nested call may have no more than what the calls around it have left.
    operations_of: RefCell<Option<Arc<Control>>>,
    memory_of: RefCell<Option<Arc<Control>>>,
}

impl Current {
    /// Stops the call whose budget is used up, and the running one inside it.
    fn over(&self, why: Stop) {
        let owner = if why == Stop::Memory { &self.memory_of } else { &self.operations_of };
        for control in [owner.borrow().as_ref(), self.control.borrow().as_ref()].into_iter().flatten() {
            control.stop(why);
        }
    }
}

thread_local! {
    static CURRENT: Current = const { Current {
        control: RefCell::new(None),
        operations: Cell::new(0),
        operations_cap: Cell::new(u64::MAX),
        memory_cap: Cell::new(i64::MAX),
        operations_of: RefCell::new(None),
        memory_of: RefCell::new(None),
    } };
}

/// A budget in force on this thread until it is dropped. A nested one can only be smaller and counts on in its parent.
pub struct Running {
    outer: Option<Arc<Control>>,
    outer_operations_cap: u64,
    outer_memory_cap: i64,
    outer_operations_of: Option<Arc<Control>>,
    outer_memory_of: Option<Arc<Control>>,
    outer_peak: i64,
    live: i64,
    operations: u64,
    control: Arc<Control>,
}

/// Puts `control` in force on this thread.
#[must_use]
pub fn enter(control: Arc<Control>) -> Running {
    let budget = control.budget;
    IN_FORCE.with(|all| all.lock().unwrap_or_else(PoisonError::into_inner).push(control.clone()));
    Timer::get().wake();
    CURRENT.with(|c| {
        let outer = c.control.replace(Some(control.clone()));
        if outer.is_none() {
            c.operations.set(0);
        }
        let live = alloc::live();
        let outer_operations_cap = c.operations_cap.get();
        let outer_memory_cap = c.memory_cap.get();
        let used = c.operations.get();
        let operations_cap = used.saturating_add(budget.operations);
        let mut outer_operations_of = c.operations_of.borrow().clone();
        if outer.is_none() || operations_cap < outer_operations_cap {
            c.operations_cap.set(operations_cap);
            outer_operations_of = c.operations_of.replace(Some(control.clone()));
        }
        let memory = pool::bears().map_or(budget.memory, |most| budget.memory.min(most));
        let memory = i64::try_from(memory).unwrap_or(i64::MAX);
        let memory_cap = live.saturating_add(memory);
        let mut outer_memory_of = c.memory_of.borrow().clone();
        if outer.is_none() || memory_cap < outer_memory_cap {
            c.memory_cap.set(memory_cap);
            outer_memory_of = c.memory_of.replace(Some(control.clone()));
        }
        Running {
            outer,
            outer_operations_cap,
            outer_memory_cap,
            outer_operations_of,
            outer_memory_of,
            outer_peak: alloc::reset_peak(),
            live,
            operations: used,
            control,
        }
    })
}

impl Running {
    /// Operations used since this budget came into force.
    #[must_use]
    pub fn operations(&self) -> u64 {
        CURRENT.with(|c| c.operations.get()) - self.operations
    }

    /// The highest number of bytes held since then; 0 where the allocator is not installed.
    #[must_use]
    pub fn peak_bytes(&self) -> u64 {
        u64::try_from(alloc::peak() - self.live).unwrap_or(0)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.control.used.store(self.operations(), Ordering::Release);
        // A thread that is ending has nothing in force any more.
        let _ = IN_FORCE.try_with(|all| {
            let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(at) = all.iter().rposition(|c| Arc::ptr_eq(c, &self.control)) {
                all.remove(at);
            }
        });
        CURRENT.with(|c| {
            c.control.replace(self.outer.take());
            c.operations_cap.set(self.outer_operations_cap);
            c.memory_cap.set(self.outer_memory_cap);
            c.operations_of.replace(self.outer_operations_of.take());
            c.memory_of.replace(self.outer_memory_of.take());
        });
        alloc::restore_peak(self.outer_peak);
    }
}

/// The progress hook: called by the engine at every operation.
#[inline]
#[must_use]
pub fn tick() -> Stop {
    CURRENT.with(|c| {
        let used = c.operations.get() + 1;
        c.operations.set(used);
        let over = if used > c.operations_cap.get() {
            Stop::Operations
        } else if alloc::live() > c.memory_cap.get() {
            Stop::Memory
        } else {
            // A call thread only ever borrows this cell for an instant, so the flag is there to read.
            return c.control.borrow().as_ref().map_or(Stop::No, |control| control.stopped());
        };
        c.over(over);
        over
    })
}

/// The compiler's hook, called at every token: as [`tick`], but a token is no operation.
#[inline]
#[must_use]
pub fn is_stopped() -> bool {
    CURRENT.with(|c| {
        let control = c.control.borrow();
        let Some(control) = control.as_ref() else { return false };
        if alloc::live() > c.memory_cap.get() {
            c.over(Stop::Memory);
        }
        control.stopped() != Stop::No
    })
}

/// Asks before a native allocates `bytes` at once: the progress hook only sees what already happened.
///
/// # Errors
/// `quota` when the memory budget does not allow it, or the call's own stop.
pub fn reserve(bytes: usize) -> Result<()> {
    CURRENT.with(|c| {
        let want = i64::try_from(bytes).unwrap_or(i64::MAX);
        let control = c.control.borrow();
        let Some(control) = control.as_ref() else { return Ok(()) };
        if alloc::live().saturating_add(want) > c.memory_cap.get() {
            c.over(Stop::Memory);
        }
        // Without the counting allocator one native may still not ask for more than the whole budget.
        if u64::try_from(bytes).unwrap_or(u64::MAX) > control.budget.memory {
            control.stop(Stop::Memory);
        }
        if control.stopped() == Stop::No { Ok(()) } else { Err(control.error()) }
    })
}

/// What may be held where no call is running, such as in a test or while starting.
const WITHOUT_CALL: usize = 256 << 20;

/// For natives that build something piece by piece: whether `more` bytes may join the `have` already there.
/// Where not, the call is over at its next operation.
#[must_use]
pub fn may_hold(have: usize, more: usize) -> bool {
    CURRENT.with(|c| {
        let control = c.control.borrow();
        let Some(control) = control.as_ref() else { return have.saturating_add(more) <= WITHOUT_CALL };
        let over = alloc::live().saturating_add(i64::try_from(more).unwrap_or(i64::MAX)) > c.memory_cap.get();
        let alone = u64::try_from(have.saturating_add(more)).unwrap_or(u64::MAX) > control.budget.memory;
        if over {
            c.over(Stop::Memory);
        } else if alone {
            control.stop(Stop::Memory);
        }
        control.stopped() == Stop::No
    })
}

/// For natives that go over many values without a script's doing: counts `operations` at once.
///
/// # Errors
/// The call's own stop, or `quota` when its operations are used up.
pub fn work(operations: u64) -> Result<()> {
    CURRENT.with(|c| {
        let used = c.operations.get().saturating_add(operations);
        c.operations.set(used);
        let control = c.control.borrow();
        let Some(control) = control.as_ref() else { return Ok(()) };
        if used > c.operations_cap.get() {
            c.over(Stop::Operations);
        }
        if control.stopped() == Stop::No { Ok(()) } else { Err(control.error()) }
    })
}

/// For long natives: whether the call has been stopped meanwhile.
///
/// # Errors
/// The call's own stop.
pub fn check() -> Result<()> {
    CURRENT.with(|c| match c.control.borrow().as_ref() {
        Some(control) if control.stopped() != Stop::No => Err(control.error()),
        _ => Ok(()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nested_budget_is_capped_by_its_parent_and_counts_in_it() {
        let outer = Control::start(Budget { operations: 10, ..Budget::CALL });
        let running = enter(outer.clone());
        for _ in 0..4 {
            assert_eq!(tick(), Stop::No);
        }
        let inner = Control::start(Budget { operations: 100, ..Budget::CALL });
        {
            let nested = enter(inner.clone());
            for _ in 0..6 {
                assert_eq!(tick(), Stop::No);
            }
            assert_eq!(tick(), Stop::Operations);
            assert_eq!(nested.operations(), 7);
        }
        assert_eq!(inner.stopped(), Stop::Operations);
        assert_eq!(running.operations(), 11);
        assert_eq!(tick(), Stop::Operations);
    }

    #[test]
    fn a_native_that_asks_for_more_than_the_budget_is_refused() {
        let control = Control::start(Budget { memory: 1000, ..Budget::CALL });
        let _running = enter(control);
        assert!(reserve(10).is_ok());
        assert_eq!(reserve(1001).map_err(|e| e.kind()), Err(Kind::Quota));
    }

    #[test]
    fn the_first_reason_stays() {
        let control = Control::start(Budget::CALL);
        control.cancel();
        control.stop(Stop::Memory);
        assert_eq!(control.stopped(), Stop::Cancel);
        assert_eq!(control.error().kind(), Kind::Cancelled);
    }
}

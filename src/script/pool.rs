//! Call threads: a bounded pool with stacks for whatever nests, grown on demand. Scripts compile and run only on such threads.
//! A thread that already is one runs the work itself: a hand-over costs more than a call.

use std::cell::Cell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

/// Stack of a call thread. Calls and expressions at their limits touch 6.1 MiB; the rest is for dropping and copying
/// values that nest as deep as the memory budget lets a script build them. Virtual, so free until it is touched.
pub const STACK: usize = if cfg!(target_pointer_width = "64") { 1 << 30 } else { 64 << 20 };

/// What to try where the system does not give that much.
const STACKS: [usize; 3] = [STACK, 256 << 20, 64 << 20];

const IDLE: Duration = Duration::from_secs(30);
/// How often a thread without work looks for more before it sleeps.
const LOOKS: u32 = 14;

type Job = Box<dyn FnOnce() + Send>;

thread_local! {
    /// The stack of this thread, where it is a call thread.
    static CALL_STACK: Cell<Option<usize>> = const { Cell::new(None) };
    /// The stack of a thread that is none and may be one for a while.
    static LENT_STACK: Cell<Option<usize>> = const { Cell::new(None) };
}

/// The largest stack for a call thread that this system gives.
#[must_use]
pub fn largest_stack() -> Option<usize> {
    STACKS.into_iter().find(|stack| {
        let spawned = std::thread::Builder::new().name("lapidary-stack".to_owned()).stack_size(*stack).spawn(|| {});
        spawned.is_ok_and(|thread| thread.join().is_ok())
    })
}

/// Says of this thread that it was started with so much stack, so that [`borrowed`] may run scripts on it.
pub fn lend(stack: usize) {
    LENT_STACK.set(Some(stack));
}

/// Whether [`borrowed`] would run anything on this thread.
#[must_use]
pub fn is_lent() -> bool {
    LENT_STACK.get().is_some()
}

/// Runs `work` with this thread as a call thread, where it was lent for that. `None` where it was not, or when it panicked.
pub fn borrowed<T>(work: impl FnOnce() -> T) -> Option<T> {
    struct Back(Option<usize>);
    impl Drop for Back {
        fn drop(&mut self) {
            CALL_STACK.set(self.0);
        }
    }
    let stack = LENT_STACK.get()?;
    let _back = Back(CALL_STACK.replace(Some(stack)));
    catch_unwind(AssertUnwindSafe(work)).ok()
}

/// Whether this thread has the stack that scripts need.
#[must_use]
pub fn is_call_thread() -> bool {
    CALL_STACK.get().is_some()
}

/// The most bytes of script values that this thread's stack bears: what nests deepest takes 1.7 bytes of stack for each
/// byte that the budget counts. `None` on a thread that is no call thread.
#[must_use]
pub(super) fn bears() -> Option<u64> {
    CALL_STACK.get().map(|stack| (stack as u64 - (8 << 20)) * 10 / 19)
}

/// Spawns a thread that counts as a call thread: a door's own reader, an agent, a bench.
///
/// # Errors
/// The operating system's, when there are no more threads.
pub fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> std::io::Result<std::thread::JoinHandle<T>> {
    // A thread that does not come to be drops what it was given.
    let work = Arc::new(Mutex::new(Some(work)));
    let mut last = None;
    for stack in STACKS {
        let work = work.clone();
        let spawned = std::thread::Builder::new().name(name.to_owned()).stack_size(stack).spawn(move || {
            CALL_STACK.set(Some(stack));
            let work = work.lock().unwrap_or_else(PoisonError::into_inner).take();
            work.expect("only one of the threads comes to be")()
        });
        match spawned {
            Ok(handle) => return Ok(handle),
            Err(e) => last = Some(e),
        }
    }
    Err(last.unwrap_or_else(|| std::io::Error::other("no thread")))
}

/// The pool.
#[derive(Clone)]
pub struct Pool(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    /// The length of the queue, for threads that look without the lock.
    queued: AtomicUsize,
    wake: Condvar,
    most: usize,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Job>,
    threads: usize,
    /// Threads that look for work, asleep or not.
    idle: usize,
    /// Those of them that are still awake.
    looking: usize,
}

impl Pool {
    /// A pool of at most `most` threads; none is started before there is work.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Pool(Arc::new(Shared {
            state: Mutex::default(),
            queued: AtomicUsize::new(0),
            wake: Condvar::new(),
            most: most.max(1),
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues work; it runs in order of arrival as threads come free.
    pub fn submit(&self, job: impl FnOnce() + Send + 'static) {
        let (grow, wake) = {
            let mut state = self.state();
            state.queue.push_back(Box::new(job));
            self.0.queued.store(state.queue.len(), Ordering::Release);
            let grow = state.queue.len() > state.idle && state.threads < self.0.most;
            if grow {
                state.threads += 1;
            }
            // Who is still awake looks at the queue once more before it sleeps.
            (grow, !grow && state.queue.len() > state.looking && state.idle > state.looking)
        };
        if grow {
            let pool = self.clone();
            if spawn("lapidary-call", move || pool.work()).is_err() {
                let mut state = self.state();
                state.threads -= 1;
                // Out of threads: the ones that exist will come to it. Where there are none, whoever waits is told by
                // its job being dropped.
                if state.threads == 0 {
                    let lost = std::mem::take(&mut state.queue);
                    self.0.queued.store(0, Ordering::Release);
                    drop(state);
                    drop(lost);
                    return;
                }
                drop(state);
                self.0.wake.notify_one();
            }
        }
        if wake {
            self.0.wake.notify_one();
        }
    }

    fn work(&self) {
        let mut state = self.state();
        loop {
            if let Some(job) = state.queue.pop_front() {
                self.0.queued.store(state.queue.len(), Ordering::Release);
                drop(state);
                // What a job panics with is its own affair; the thread goes on.
                let _ = catch_unwind(AssertUnwindSafe(job));
                state = self.state();
                continue;
            }
            // Work often comes again at once, and falling asleep and being woken costs several times a small call.
            state.idle += 1;
            state.looking += 1;
            drop(state);
            self.look();
            state = self.state();
            state.looking -= 1;
            let mut timed_out = false;
            if state.queue.is_empty() {
                let (next, timeout) = self.0.wake.wait_timeout(state, IDLE).unwrap_or_else(PoisonError::into_inner);
                state = next;
                timed_out = timeout.timed_out();
            }
            state.idle -= 1;
            if timed_out && state.queue.is_empty() {
                state.threads -= 1;
                return;
            }
        }
    }

    /// Looks for work for a few microseconds, giving the processor to whoever else wants it.
    fn look(&self) {
        for round in 0..LOOKS {
            if self.0.queued.load(Ordering::Acquire) > 0 {
                return;
            }
            if round < LOOKS / 2 {
                (0..1 << round.min(6)).for_each(|_| std::hint::spin_loop());
            } else {
                std::thread::yield_now();
            }
        }
    }

    /// Runs `work` on a call thread and waits for it; on a call thread it runs right here.
    /// `None` when it panicked.
    pub fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        if is_call_thread() {
            return catch_unwind(AssertUnwindSafe(work)).ok();
        }
        let (tx, rx) = mpsc::sync_channel(1);
        self.submit(move || {
            let _ = tx.send(work());
        });
        rx.recv().ok()
    }

    /// As [`Pool::run`], for async callers. `None` when it panicked.
    pub async fn run_async<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let (tx, rx) = tokio::sync::oneshot::channel();
        self.submit(move || {
            let _ = tx.send(work());
        });
        rx.await.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_runs_on_call_threads_and_nested_work_stays_there() {
        let pool = Pool::new(2);
        let inner = pool.clone();
        let ids = pool.run(move || {
            let outer = std::thread::current().id();
            inner.run(move || (outer, std::thread::current().id(), is_call_thread()))
        });
        let (outer, nested, call) = ids.flatten().unwrap_or_else(|| panic!("the job ran"));
        assert_eq!(outer, nested);
        assert!(call);
        assert!(!is_call_thread());
    }

    #[test]
    fn a_lent_thread_is_a_call_thread_while_it_is_borrowed() {
        assert_eq!(borrowed(is_call_thread), None);
        std::thread::spawn(|| {
            lend(STACK);
            assert!(is_lent() && !is_call_thread());
            assert_eq!(borrowed(is_call_thread), Some(true));
            assert_eq!(borrowed(|| -> i32 { panic!("boom") }), None);
            assert!(!is_call_thread());
        })
        .join()
        .unwrap_or_else(|_| panic!("the thread ran"));
    }

    #[test]
    fn a_panic_ends_the_job_not_the_pool() {
        let pool = Pool::new(1);
        assert_eq!(pool.run(|| -> i32 { panic!("boom") }), None);
        assert_eq!(pool.run(|| 7), Some(7));
    }
}

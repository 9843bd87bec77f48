//! Call threads: a bounded pool with 16 MiB stacks, grown on demand. Scripts compile and run only on such threads.
//! A thread that already is one runs the work itself: a hand-over costs more than a call.

use std::cell::Cell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

/// Stack of a call thread: 6.1 MiB are touched at the depth limits, the rest is for natives. Virtual, so free.
pub const STACK: usize = 16 << 20;

const IDLE: Duration = Duration::from_secs(30);

type Job = Box<dyn FnOnce() + Send>;

thread_local! {
    static IS_CALL_THREAD: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread has the stack that scripts need.
#[must_use]
pub fn is_call_thread() -> bool {
    IS_CALL_THREAD.get()
}

/// Spawns a thread that counts as a call thread: a door's own reader, an agent, a bench.
///
/// # Errors
/// The operating system's, when there are no more threads.
pub fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> std::io::Result<std::thread::JoinHandle<T>> {
    std::thread::Builder::new().name(name.to_owned()).stack_size(STACK).spawn(move || {
        IS_CALL_THREAD.set(true);
        work()
    })
}

/// The pool.
#[derive(Clone)]
pub struct Pool(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    wake: Condvar,
    most: usize,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Job>,
    threads: usize,
    idle: usize,
}

impl Pool {
    /// A pool of at most `most` threads; none is started before there is work.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Pool(Arc::new(Shared { state: Mutex::default(), wake: Condvar::new(), most: most.max(1) }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues work; it runs in order of arrival as threads come free.
    pub fn submit(&self, job: impl FnOnce() + Send + 'static) {
        let grow = {
            let mut state = self.state();
            state.queue.push_back(Box::new(job));
            let grow = state.queue.len() > state.idle && state.threads < self.0.most;
            if grow {
                state.threads += 1;
            }
            grow
        };
        if grow {
            let pool = self.clone();
            if spawn("lapidary-call", move || pool.work()).is_err() {
                // Out of threads: the ones that exist will come to it.
                self.state().threads -= 1;
            }
        }
        self.0.wake.notify_one();
    }

    fn work(&self) {
        let mut state = self.state();
        loop {
            if let Some(job) = state.queue.pop_front() {
                drop(state);
                // What a job panics with is its own affair; the thread goes on.
                let _ = catch_unwind(AssertUnwindSafe(job));
                state = self.state();
                continue;
            }
            state.idle += 1;
            let (next, timeout) = self.0.wake.wait_timeout(state, IDLE).unwrap_or_else(PoisonError::into_inner);
            state = next;
            state.idle -= 1;
            if timeout.timed_out() && state.queue.is_empty() {
                state.threads -= 1;
                return;
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
    fn a_panic_ends_the_job_not_the_pool() {
        let pool = Pool::new(1);
        assert_eq!(pool.run(|| -> i32 { panic!("boom") }), None);
        assert_eq!(pool.run(|| 7), Some(7));
    }
}

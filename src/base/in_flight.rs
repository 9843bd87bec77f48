//! What is in flight: counted until it ends, waited for within a while, and then told to stop. It knows nothing of what it counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

/// How long what is in flight may go on once a door closes.
pub const GRACE: Duration = Duration::from_secs(10);
/// How long something that was told to stop may take to do so.
const STOPPING: Duration = Duration::from_secs(2);

/// A count of what is in flight. Cheap to clone; all clones count together.
#[derive(Clone, Default)]
pub struct Flights(Arc<Inner>);

#[derive(Default)]
struct Inner {
    running: AtomicUsize,
    ended: Notify,
}

/// Something in flight, until this is dropped.
pub struct InFlight(Flights);

impl Flights {
    /// Counts one more until the guard is dropped.
    #[must_use]
    pub fn enter(&self) -> InFlight {
        self.0.running.fetch_add(1, Ordering::AcqRel);
        InFlight(self.clone())
    }

    /// Resolves once nothing is in flight. What was there at `deadline` is told to `stop`, and is waited for a moment longer.
    pub async fn drain(&self, deadline: Instant, stop: impl FnOnce()) {
        if timeout_at(deadline, self.idle()).await.is_err() {
            stop();
            let _ = timeout_at(deadline + STOPPING, self.idle()).await;
        }
    }

    async fn idle(&self) {
        loop {
            let ended = self.0.ended.notified();
            tokio::pin!(ended);
            // It listens before it looks, so that no end is missed in between.
            ended.as_mut().enable();
            if self.0.running.load(Ordering::Acquire) == 0 {
                return;
            }
            ended.await;
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let inner = &self.0.0;
        if inner.running.fetch_sub(1, Ordering::AcqRel) == 1 {
            inner.ended.notify_waiters();
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    fn on_a_runtime<T>(work: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(work)
    }

    #[test]
    fn it_waits_for_the_last_one_and_tells_nobody_to_stop_before_the_deadline() {
        on_a_runtime(async {
            let flights = Flights::default();
            let far = Instant::now() + Duration::from_secs(3600);
            flights.drain(far, || panic!("nothing is in flight")).await;
            let (one, other) = (flights.enter(), flights.clone().enter());
            let mut drained = pin!(flights.drain(far, || panic!("the deadline is far")));
            let mut look = || drained.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert_eq!(look(), Poll::Pending);
            drop(one);
            assert_eq!(look(), Poll::Pending);
            drop(other);
            assert_eq!(look(), Poll::Ready(()));
        });
    }

    #[test]
    fn what_is_there_at_the_deadline_is_told_to_stop_once() {
        on_a_runtime(async {
            let flights = Flights::default();
            let held = RefCell::new(Some(flights.enter()));
            let told = Cell::new(0);
            let stop = || {
                told.set(told.get() + 1);
                drop(held.take());
            };
            flights.drain(Instant::now(), stop).await;
            assert!(told.get() == 1 && held.borrow().is_none());
        });
    }
}

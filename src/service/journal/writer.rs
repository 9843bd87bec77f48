//! The queue that calls hand their records to, and the one thread that writes them. Who hands over takes a lock for an instant and
//! wakes the thread at most once for a batch; where the queue is full the newest record is counted and let go.

use super::{Ended, Given, Setup, kept};
use crate::base::error::{Error, Result};
use crate::base::event::Event;
use crate::service::markers::Part;
use crate::store::journal::CallRow;
use serde_json::{Map, Value};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Most records that wait.
pub(super) const MOST: usize = 8192;
/// Most bytes that wait, about.
const MOST_BYTES: usize = 32 << 20;
/// How long the thread lets records gather, for one transaction costs as much as many rows.
const GATHER: Duration = Duration::from_millis(100);
/// So many records, or bytes, end the gathering.
const HURRY: usize = 1024;
const HURRY_BYTES: usize = 4 << 20;
/// Most records and bytes of one transaction: other writers of the database wait for it.
const BATCH: usize = 512;
const BATCH_BYTES: usize = 4 << 20;

/// After so much quiet the database may take the time to bring what was written into its file.
const QUIET: Duration = Duration::from_secs(1);

/// Records to write. They stay in their boxes: each is moved four times, and is large.
type Batch = Vec<Record>;
type Record = Box<Ended>;

/// Hands records to a thread of its own, which starts with the first.
pub(super) struct Writer {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    setup: Setup,
    queue: Mutex<Queue>,
    /// The thread waits here for records.
    work: Condvar,
    /// Who flushes waits here for the thread.
    done: Condvar,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<(usize, Box<Ended>)>,
    bytes: usize,
    state: State,
    /// Records that were taken in, and those of them that are done with.
    taken: u64,
    finished: u64,
    /// Records that were let go and are not in the database's count yet.
    lost: u64,
    /// Somebody waits for the records: they gather no longer.
    is_urgent: bool,
    is_closed: bool,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum State {
    /// There is no thread.
    #[default]
    None,
    /// It waits for the first record.
    Asleep,
    /// It is on its way, or gathers, or writes.
    Awake,
    /// It is told not to gather any longer.
    Hurried,
}

impl Writer {
    pub(super) fn new(setup: Setup) -> Writer {
        let (queue, work, done) = (Mutex::default(), Condvar::new(), Condvar::new());
        Writer { shared: Arc::new(Shared { setup, queue, work, done }), thread: Mutex::default() }
    }

    /// Takes a record in, or counts it as lost.
    pub(super) fn push(&self, ended: Box<Ended>) {
        let weight = weigh(&ended);
        let mut queue = self.shared.queue();
        if queue.is_closed || queue.waiting.len() >= MOST || queue.bytes + weight > MOST_BYTES {
            queue.lost += 1;
            return;
        }
        queue.waiting.push_back((weight, ended));
        queue.bytes += weight;
        queue.taken += 1;
        match queue.state {
            State::None => {
                queue.state = State::Awake;
                drop(queue);
                self.start();
            }
            State::Asleep => {
                queue.state = State::Awake;
                self.shared.work.notify_one();
            }
            State::Awake if queue.waiting.len() >= HURRY || queue.bytes >= HURRY_BYTES => {
                queue.state = State::Hurried;
                self.shared.work.notify_one();
            }
            State::Awake | State::Hurried => {}
        }
    }

    fn start(&self) {
        let shared = self.shared.clone();
        let spawned = std::thread::Builder::new().name("lapidary-journal".into()).spawn(move || shared.run());
        match spawned {
            Ok(thread) => *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread),
            Err(_) => {
                let mut queue = self.shared.queue();
                queue.state = State::None;
                queue.lost += queue.waiting.len() as u64;
                queue.finished = queue.taken;
                queue.waiting.clear();
                queue.bytes = 0;
            }
        }
    }

    /// Waits until everything that was taken in before is written, at most `most`; whether it is.
    pub(super) fn flush(&self, most: Duration) -> bool {
        let mut queue = self.shared.queue();
        let target = queue.taken;
        if queue.finished >= target {
            return true;
        }
        queue.is_urgent = true;
        self.shared.work.notify_one();
        let waited = self.shared.done.wait_timeout_while(queue, most, |queue| queue.finished < target);
        let (queue, _) = waited.unwrap_or_else(PoisonError::into_inner);
        queue.finished >= target
    }

    /// Records that were let go and that nobody has counted in the database yet.
    pub(super) fn lost(&self) -> u64 {
        self.shared.queue().lost
    }

    pub(super) fn forget_lost(&self) {
        self.shared.queue().lost = 0;
    }

    /// Writes everything and ends the thread.
    pub(super) fn close(&self) {
        self.shared.queue().is_closed = true;
        self.shared.work.notify_one();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let (mut has_failed, mut is_behind) = (false, false);
        while let Some((batch, lost)) = self.next(&mut is_behind) {
            is_behind = true;
            let count = batch.len() as u64;
            // One record that brings it down must not end the journal.
            let written = catch_unwind(AssertUnwindSafe(|| self.write(batch, lost)))
                .unwrap_or_else(|_| Err(Error::internal("the host failed while writing them")));
            let mut queue = self.queue();
            queue.finished += count;
            match written {
                Ok(unkept) => {
                    queue.lost += unkept;
                    has_failed = false;
                }
                Err(e) => {
                    queue.lost += count + lost;
                    drop(queue);
                    if !std::mem::replace(&mut has_failed, true) {
                        let message = format!("calls are not kept in the journal: {e}");
                        self.setup.bus.publish(Event::Notice { subject: "user/lapidary.db".into(), message });
                    }
                }
            }
            self.done.notify_all();
        }
        let lost = std::mem::take(&mut self.queue().lost);
        if lost > 0 && !has_failed {
            let _ = self.setup.store.add_calls(&[], lost, &self.setup.limits.room(&self.setup.clock));
        }
    }

    /// The next batch, and how many records were lost before it; `None` at the end. While none comes, the database catches up.
    fn next(&self, is_behind: &mut bool) -> Option<(Batch, u64)> {
        let mut queue = self.queue();
        while queue.waiting.is_empty() {
            queue.is_urgent = false;
            if queue.is_closed {
                return None;
            }
            queue.state = State::Asleep;
            if *is_behind {
                let (woken, waited) = self.work.wait_timeout(queue, QUIET).unwrap_or_else(PoisonError::into_inner);
                queue = woken;
                if waited.timed_out() && queue.waiting.is_empty() {
                    *is_behind = false;
                    drop(queue);
                    self.setup.store.catch_up();
                    queue = self.queue();
                }
            } else {
                queue = self.work.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
            queue.state = State::Awake;
        }
        let is_gathering = |queue: &mut Queue| !(queue.is_closed || queue.is_urgent || is_much(queue));
        let end = Instant::now() + GATHER;
        while is_gathering(&mut queue) {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            queue = self.work.wait_timeout(queue, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        queue.state = State::Awake;
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while batch.len() < BATCH && bytes < BATCH_BYTES {
            let Some((weight, ended)) = queue.waiting.pop_front() else { break };
            queue.bytes -= weight;
            bytes += weight;
            batch.push(ended);
        }
        let lost = std::mem::take(&mut queue.lost);
        Some((batch, lost))
    }

    /// Gives how many records could not be made free of secrets.
    fn write(&self, batch: Batch, lost: u64) -> Result<u64> {
        let Setup { store, clock, limits, known, .. } = &self.setup;
        let known = known();
        let count = batch.len();
        let rows: Vec<CallRow> = batch
            .into_iter()
            .enumerate()
            .filter_map(|(n, ended)| {
                crate::store::journal::give_way(n);
                kept::row(*ended, &known, limits.max_text)
            })
            .collect();
        store.add_calls(&rows, lost, &limits.room(clock))?;
        Ok((count - rows.len()) as u64)
    }
}

fn is_much(queue: &Queue) -> bool {
    queue.waiting.len() >= HURRY || queue.bytes >= HURRY_BYTES
}

/// The bytes of a record, about. It is asked on the thread of the call, so it copies and writes nothing.
fn weigh(ended: &Ended) -> usize {
    let arguments = match &ended.arguments {
        Given::Text(text) => text.len(),
        Given::Object(map) => weigh_map(map),
    };
    let parts: usize = ended.parts.iter().map(weigh_part).sum();
    512 + arguments
        + parts
        + ended.text.len()
        + ended.shown.as_ref().map_or(0, String::len)
        + ended.structured.as_ref().map_or(0, weigh_value)
        + ended.said.as_ref().map_or(0, |(said, _)| said.weight())
}

/// The bytes of a value, about.
pub(super) fn weigh_value(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
        Value::String(text) => text.len() + 24,
        Value::Array(items) => 24 + items.iter().map(weigh_value).sum::<usize>(),
        Value::Object(map) => weigh_map(map),
    }
}

fn weigh_map(map: &Map<String, Value>) -> usize {
    24 + map.iter().map(|(key, value)| key.len() + 24 + weigh_value(value)).sum::<usize>()
}

fn weigh_part(part: &Part) -> usize {
    let rows = match part {
        Part::Image(_) => 1,
        Part::Gallery(gallery) => gallery.items.len(),
        Part::Files(files) => files.items.len(),
    };
    256 + rows * 256
}

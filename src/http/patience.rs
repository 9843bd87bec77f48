//! A connection that waits only so long for its other side to take what it is sent. A reader that stands still would hold its place
//! for ever: what it asked for is not even looked at while it does. It knows nothing of what is sent.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// A stream whose writes fail once none of them has made progress for a while.
pub(super) struct Patient<S> {
    inner: S,
    patience: Duration,
    /// Made at the first write that has to wait; most connections never have one.
    timer: Option<Pin<Box<Sleep>>>,
    /// Whether the timer runs.
    is_waiting: bool,
}

impl<S> Patient<S> {
    /// `inner`, where a write that goes on may wait for `patience`.
    pub(super) fn new(inner: S, patience: Duration) -> Patient<S> {
        Patient { inner, patience, timer: None, is_waiting: false }
    }

    /// What a write came to, or the end of patience.
    fn judge(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.is_waiting = false;
            return written;
        }
        let patience = self.patience;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(patience)));
        if !std::mem::replace(&mut self.is_waiting, true) {
            timer.as_mut().reset(Instant::now() + patience);
        }
        ready!(timer.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the other side takes nothing")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(cx, buf);
        self.judge(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(cx, bufs);
        self.judge(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    // A socket has nothing to flush, so that a flush which is done is no progress.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::task::Waker;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    /// More than any test takes.
    const LONG: Duration = Duration::from_secs(3600);

    fn on_a_runtime<T>(work: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(work)
    }

    #[test]
    fn who_takes_nothing_is_waited_for_only_so_long() {
        on_a_runtime(async {
            let (held, ours) = duplex(16);
            let mut ours = Patient::new(ours, Duration::from_millis(1));
            ours.write_all(&[1; 16]).await.unwrap();
            let e = ours.write_all(&[1]).await.unwrap_err();
            assert_eq!(e.kind(), io::ErrorKind::TimedOut);
            drop(held);
        });
    }

    #[test]
    fn who_takes_a_little_at_a_time_gets_everything() {
        on_a_runtime(async {
            let (mut theirs, ours) = duplex(16);
            let mut ours = Patient::new(ours, LONG);
            let sent: Vec<u8> = (0..=255).collect();
            let expected = sent.clone();
            let reader = tokio::spawn(async move {
                let mut all = Vec::new();
                while all.len() < 256 {
                    all.push(theirs.read_u8().await.unwrap());
                }
                all
            });
            ours.write_all(&sent).await.unwrap();
            assert_eq!(reader.await.unwrap(), expected);
        });
    }

    #[test]
    fn time_counts_from_the_last_progress() {
        on_a_runtime(async {
            let (mut theirs, ours) = duplex(16);
            let mut ours = Patient::new(ours, LONG);
            let write = |ours: &mut Patient<_>| {
                let written = Pin::new(&mut *ours).poll_write(&mut Context::from_waker(Waker::noop()), &[1; 16]);
                (written.is_ready(), ours.is_waiting, ours.timer.as_ref().map(|timer| timer.deadline()))
            };
            assert_eq!(write(&mut ours), (true, false, None));
            let (_, is_waiting, first) = write(&mut ours);
            assert!(is_waiting && first.is_some());
            assert_eq!(write(&mut ours), (false, true, first), "looking again is no progress");
            theirs.read_exact(&mut [0; 16]).await.unwrap();
            assert_eq!(write(&mut ours), (true, false, first));
            let (is_ready, is_waiting, second) = write(&mut ours);
            assert!(!is_ready && is_waiting && second > first, "it begins anew");
        });
    }
}

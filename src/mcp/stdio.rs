//! MCP over standard input and output: lines in, lines out, until the input ends. Nothing but protocol is ever written there.

use super::door::{Door, Options};
use super::server::Session;
use super::wire::{self, Read};
use crate::app::Host;
use crate::base::error::{Error, Result};
use crate::base::in_flight::GRACE;
use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage, ServerJsonRpcMessage, ServerResult};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::{RoleServer, ServiceExt};
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::Mutex;
use tokio::time::Instant;

/// Longest line; a longer one is dropped and answered with an error.
const LINE: usize = 16 << 20;

/// Serves MCP on standard input and output until the input ends or the process is told to stop, then ends the host. Calls in
/// flight finish first, for at most 10 seconds.
///
/// # Errors
/// When there is no runtime to be had. What a client does wrong is answered, never returned.
pub fn stdio(host: &Host, options: &Options) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Error::internal(format!("cannot start the runtime: {e}")))?;
    let door = Door::new(host, options);
    runtime.block_on(async {
        let ending = door.clone();
        tokio::spawn(async move {
            told_to_stop().await;
            ending.close();
        });
        let (reader, writer) = rmcp::transport::stdio_pipes();
        let lines = Lines::new(door.clone(), reader, writer);
        // A client that leaves before it has introduced itself is no fault of the host.
        match Session::new(door).serve(lines).await {
            Ok(running) => {
                let _ = running.waiting().await;
            }
            Err(e) => tracing::debug!(reason = %e, "no session came about"),
        }
    });
    // A read of standard input that is still pending must not hold the process.
    runtime.shutdown_background();
    host.stop();
    Ok(())
}

/// Resolves when the process is asked to end: Ctrl-C, or a termination signal.
pub async fn told_to_stop() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}

/// The transport: one message a line. Dropping a future of `receive` loses nothing, for the SDK does so whenever it has
/// something to send.
struct Lines<R, W> {
    door: Arc<Door>,
    read: BufReader<R>,
    line: Vec<u8>,
    /// The rest of a line that was too long is on its way.
    dropping: bool,
    /// A request came, so the session has begun.
    begun: bool,
    /// Since when the input has ended.
    ended: Option<Instant>,
    write: Arc<Mutex<Option<W>>>,
}

enum Line {
    Whole,
    TooLong,
    End,
}

impl<R, W> Lines<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    fn new(door: Arc<Door>, read: R, write: W) -> Self {
        Lines {
            door,
            read: BufReader::with_capacity(64 << 10, read),
            line: Vec::new(),
            dropping: false,
            begun: false,
            ended: None,
            write: Arc::new(Mutex::new(Some(write))),
        }
    }

    /// Gathers the next line in `self.line`.
    async fn line(&mut self) -> Line {
        loop {
            let available = match self.read.fill_buf().await {
                Ok(available) => available,
                Err(e) => {
                    tracing::error!(error = %e, "standard input cannot be read");
                    return Line::End;
                }
            };
            if available.is_empty() {
                // A last line without its end still counts.
                let whole = !self.line.is_empty() && !self.dropping;
                return if whole { Line::Whole } else { Line::End };
            }
            let newline = available.iter().position(|b| *b == b'\n');
            let take = newline.map_or(available.len(), |at| at + 1);
            let fits = self.line.len() + take <= LINE;
            if fits && !self.dropping {
                self.line.extend_from_slice(&available[..take]);
            } else {
                self.line = Vec::new();
                self.dropping = true;
            }
            self.read.consume(take);
            if newline.is_some() {
                return if std::mem::take(&mut self.dropping) { Line::TooLong } else { Line::Whole };
            }
        }
    }

    /// Answers without the SDK. The write runs by itself: a future that is dropped halfway would leave half a line.
    fn reply(&self, bytes: Vec<u8>) {
        let write = self.write.clone();
        tokio::spawn(async move {
            if let Err(e) = put(&write, &bytes).await {
                tracing::error!(error = %e, "standard output cannot be written");
            }
        });
    }

    /// The next message, or `None` at the end of the input.
    async fn message(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            match self.line().await {
                Line::Whole => {}
                Line::TooLong => {
                    self.reply(too_long());
                    continue;
                }
                Line::End => return None,
            }
            let read = wire::read(&self.line);
            self.line.clear();
            if self.line.capacity() > 1 << 20 {
                self.line = Vec::new();
            }
            match read {
                Read::Message(message) => {
                    self.begun |= matches!(*message, JsonRpcMessage::Request(_));
                    // The SDK takes anything but a request at the beginning for the end.
                    if self.begun {
                        return Some(*message);
                    }
                }
                Read::Nothing => {}
                Read::Refused(reply) => self.reply(reply),
            }
        }
    }
}

fn too_long() -> Vec<u8> {
    let message = format!("this line is longer than {} MiB and was dropped", LINE >> 20);
    let mut reply =
        serde_json::json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32600, "message": message } })
            .to_string();
    reply.push('\n');
    reply.into_bytes()
}

async fn put<W: AsyncWrite + Unpin>(write: &Mutex<Option<W>>, bytes: &[u8]) -> io::Result<()> {
    let mut write = write.lock().await;
    let Some(write) = write.as_mut() else {
        return Err(io::Error::new(io::ErrorKind::NotConnected, "the session has ended"));
    };
    write.write_all(bytes).await?;
    write.flush().await
}

/// A message as a line.
fn encode(message: &ServerJsonRpcMessage, door: &Door) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(256);
    serde_json::to_writer(&mut bytes, message).map_err(io::Error::other)?;
    if let JsonRpcMessage::Response(response) = message
        && matches!(response.result, ServerResult::ListToolsResult(_))
        && let Some(full) = wire::splice(&bytes, &door.list.last().json)
    {
        bytes = full;
    }
    bytes.push(b'\n');
    Ok(bytes)
}

impl<R, W> Transport<RoleServer> for Lines<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(&mut self, item: TxJsonRpcMessage<RoleServer>) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let bytes = encode(&item, &self.door);
        let write = self.write.clone();
        async move { put(&write, &bytes?).await }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        if self.ended.is_none() {
            let door = self.door.clone();
            tokio::select! {
                message = self.message() => {
                    if message.is_some() {
                        return message;
                    }
                }
                () = door.closed() => {}
            }
            door.close();
        }
        // The calls in flight finish while the SDK goes on sending what they answer.
        let since = *self.ended.get_or_insert_with(Instant::now);
        // A request that was handed over a moment ago becomes a call in flight first.
        tokio::task::yield_now().await;
        self.door.drain(since + GRACE).await;
        None
    }

    async fn close(&mut self) -> io::Result<()> {
        self.write.lock().await.take();
        Ok(())
    }
}

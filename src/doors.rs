//! Where the command line reaches the other doors: they never import each other, so this room puts them together.

use crate::app::Host;
#[cfg(feature = "server")]
use crate::base::error::Error;
use crate::base::error::Result;

#[cfg(feature = "server")]
pub use crate::http::{Link, Options as ServeOptions, Password, Reader, Token, Tokens, link};
pub use crate::mcp::Options as McpOptions;
#[cfg(feature = "server")]
use crate::script::pool;

/// Serves MCP on standard input and output until the input ends or the process is told to stop; then the host has ended too.
///
/// # Errors
/// When there is no runtime to be had. What a client does wrong is answered, never returned.
pub fn mcp(host: &Host, options: &McpOptions) -> Result<()> {
    crate::mcp::stdio(host, options)
}

/// Serves over HTTP until the process is told to stop; then the host has ended too. `ready` is called with what to tell a
/// person at the terminal once the address is taken.
///
/// # Errors
/// `invalid_arguments` for an address or a setting that cannot be used, `permission_denied` for an address beyond this machine
/// where the owner set no password and no token, `conflict` for an address that is taken.
#[cfg(feature = "server")]
pub fn serve(host: &Host, options: &ServeOptions, ready: impl FnOnce(&Opened)) -> Result<()> {
    // Scripts have threads of their own. What is left for this one is short, and on one thread no step of a request wakes another.
    // A script that is always quick may run right here; should it not be, the rest goes on with another thread.
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(1).thread_name("lapidary-http").enable_all();
    if let Some(stack) = pool::largest_stack() {
        builder.thread_stack_size(stack).on_thread_start(move || pool::lend(stack));
    }
    let runtime = builder.build().map_err(|e| Error::internal(format!("cannot start the runtime: {e}")))?;
    runtime.block_on(async {
        let mcp = Mounted(crate::mcp::Web::new(host, &McpOptions::default()));
        let server = crate::http::Server::open(host, mcp, options).await?;
        let mut stop = Box::pin(crate::mcp::told_to_stop());
        // Whoever reads that it is ready may tell it to stop at once: it listens for that from here on.
        std::future::poll_fn(|cx| std::task::Poll::Ready(stop.as_mut().poll(cx).is_ready())).await;
        let link = server.link();
        if let Err(e) = &link {
            tracing::debug!(code = e.code(), "no link for signing in was made");
        }
        let link = link.ok();
        let greeting = server.greeting(link.as_ref(), options.reader);
        ready(&Opened { address: server.address(), url: server.url().to_owned(), greeting, link });
        server.run(stop).await;
        Ok(())
    })
}

/// A server that has its address.
#[cfg(feature = "server")]
#[derive(Debug, Clone)]
pub struct Opened {
    /// Where it listens.
    pub address: std::net::SocketAddr,
    /// Where people find it.
    pub url: String,
    /// What whoever started it is told: the address, and what to do next. It is for the reader that the options name.
    pub greeting: String,
    /// A link that signs a person in; none where the root cannot be written.
    pub link: Option<Link>,
}

/// MCP as a route of the server.
#[cfg(feature = "server")]
#[derive(Clone)]
struct Mounted(crate::mcp::Web);

#[cfg(feature = "server")]
impl crate::http::Endpoint for Mounted {
    async fn handle(
        &self,
        request: http::Request<bytes::Bytes>,
    ) -> http::Response<http_body_util::combinators::BoxBody<bytes::Bytes, std::convert::Infallible>> {
        self.0.handle(request).await
    }

    async fn close(&self) {
        self.0.close().await;
    }
}

//! Where the command line reaches the other doors: they never import each other, so this room puts them together.

use crate::app::Host;
use crate::base::error::Result;

pub use crate::mcp::Options as McpOptions;

/// Serves MCP on standard input and output until the input ends or the process is told to stop; then the host has ended too.
///
/// # Errors
/// When there is no runtime to be had. What a client does wrong is answered, never returned.
pub fn mcp(host: &Host, options: &McpOptions) -> Result<()> {
    crate::mcp::stdio(host, options)
}

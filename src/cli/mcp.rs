//! `mcp`: the tools for an MCP client, over standard input and output.

use super::context::{Context, Done, Stop, Verdict};
use crate::doors::{self, McpOptions};
use clap::Args;

/// Give the tools to an MCP client over standard input and output
#[derive(Args)]
#[command(after_help = "\
In an MCP client's configuration:
  {\"mcpServers\": {\"lapidary\": {\"command\": \"lapidary\", \"args\": [\"mcp\"]}}}")]
pub struct Mcp {
    /// The chat that every call belongs to, by name [default: none]
    #[arg(long, value_name = "NAME")]
    chat: Option<String>,
    /// Which tools to offer: all, a category, a plugin, a saved toolset, or names of tools [default: all]
    #[arg(long, value_name = "WORDS")]
    toolset: Option<String>,
}

impl Mcp {
    pub(super) fn run(&self, cx: &Context) -> Done {
        cx.workshop()?;
        let lasting = cx.lasting_host()?;
        let host = &lasting.host;
        doors::mcp(host, &McpOptions { chat: self.chat.clone(), toolset: self.toolset.clone() })
            .map_err(Stop::NoHost)?;
        Ok(Verdict::Good)
    }
}

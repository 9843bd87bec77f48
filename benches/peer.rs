//! The SDK's own echo server, as short as the SDK lets one write it: what the host's MCP door is measured against.
//! The bench program runs itself with `peer stdio TOOLS` or `peer http TOOLS`.

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, JsonObject, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{RoleServer, ServerHandler, ServiceExt};
use std::process::Command;
use std::sync::Arc;

/// A command that runs the peer.
pub fn command(transport: &str, tools: usize) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program has a path"));
    command.args(["peer", transport, &tools.to_string()]);
    command
}

/// Runs the peer, where the command line asks for it; tells whether it did.
pub fn is_asked() -> bool {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let ["peer", transport, tools] = words.iter().map(String::as_str).collect::<Vec<_>>()[..] else { return false };
    crate::measure::bare_for_good();
    let echo = Echo::new(tools.parse().expect("a number of tools"));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime starts");
    runtime.block_on(async {
        if transport == "http" {
            http(echo).await;
        } else {
            let running = echo.serve(rmcp::transport::stdio()).await.expect("the client introduces itself");
            let _ = running.waiting().await;
        }
    });
    true
}

#[derive(Clone)]
struct Echo {
    tools: Arc<Vec<Tool>>,
}

impl Echo {
    fn new(n: usize) -> Echo {
        let tools = (0..n).map(|i| {
            let schema: JsonObject = serde_json::from_str(
                r#"{"type":"object","properties":{"text":{"type":"string","description":"What to say"},"count":{"type":"integer"},"mode":{"type":"string"}},"required":["text"]}"#,
            )
            .expect("the schema is JSON");
            let description = format!("Says the given text; tool number {i}, for measuring.");
            Tool::new(format!("tool_{i:03}"), description, Arc::new(schema))
        });
        Echo { tools: Arc::new(tools.collect()) }
    }
}

impl ServerHandler for Echo {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items((*self.tools).clone()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let text = request.arguments.as_ref().and_then(|a| a.get("text")).and_then(|t| t.as_str()).unwrap_or_default();
        Ok(CallToolResult::success(vec![ContentBlock::text(format!("Did the thing to {text}"))]).into())
    }
}

async fn http(echo: Echo) {
    let sessions = Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(echo.clone()), sessions, StreamableHttpServerConfig::default());
    let router = axum::Router::new().nest_service("/mcp", service);
    crate::bare::serve(router).await;
}

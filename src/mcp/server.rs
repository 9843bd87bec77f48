//! One MCP session: tools listed, called, followed. It maps between the host's words and the protocol's and has no rule of its own.

use super::door::Door;
use super::list::{self, Rendered};
use super::parts;
use super::progress::Progress;
use super::resource;
use crate::app::Host;
use crate::base::error::Kind;
use crate::script::ctx::{NoSink, Sink};
use crate::tool::dispatch::{Arguments, Call, CallHandle, Outcome, Who};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest, CustomResult, ErrorCode,
    ErrorData, Implementation, InitializeRequestParams, InitializeResult, JsonObject, ListToolsResult, MetaObject,
    PaginatedRequestParams, ProgressNotificationParam, ReadResourceRequestParams, ReadResourceResponse,
    ReadResourceResult, ServerCapabilities, ServerConfig, SubscriptionFilter, Tool,
};
use rmcp::service::{NotificationContext, Peer, RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::mpsc;

/// Longest name of a client that is kept.
const CALLER: usize = 64;
/// How often a session that hears nothing looks whether its client is still there.
const LOOK: Duration = Duration::from_secs(60);

/// What a client is told about the whole.
const INSTRUCTIONS: &str = "The tools are scripts that their owner edits while you work: names, descriptions and parameters may \
change at any time, and you are told when the list changed. A refused call says which argument was wrong, what was expected \
and shows an example. A long result is cut and names the resource that holds all of it.";

/// What a session and its calls share.
pub(super) struct Introduced {
    #[cfg(feature = "server")]
    pub(super) door: Arc<Door>,
    /// Who calls, once the client has introduced itself.
    who: OnceLock<Who>,
}

#[cfg(feature = "server")]
impl Introduced {
    /// Who calls. A client that has not said its name is nobody in particular.
    pub(super) fn who(&self) -> Who {
        self.who.get().cloned().unwrap_or_else(|| introduce(&self.door, None))
    }
}

/// One session.
#[derive(Clone)]
pub(super) struct Session {
    door: Arc<Door>,
    introduced: Arc<Introduced>,
    /// The version of the list that the client started from; changes after it are told.
    start: Arc<OnceLock<u64>>,
    following: Arc<AtomicBool>,
}

impl Session {
    pub(super) fn new(door: Arc<Door>) -> Session {
        let introduced = Arc::new(Introduced {
            #[cfg(feature = "server")]
            door: door.clone(),
            who: OnceLock::new(),
        });
        Session { door, introduced, start: Arc::default(), following: Arc::default() }
    }

    fn host(&self) -> &Host {
        &self.door.host
    }

    fn who(&self, context: &RequestContext<RoleServer>) -> Who {
        match self.introduced.who.get() {
            Some(who) => who.clone(),
            None => introduce(&self.door, context.client_info().as_ref().map(|client| client.name.as_str())),
        }
    }

    async fn run(
        &self,
        tool: String,
        arguments: Arguments,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ErrorData> {
        let _running = self.door.enter();
        let rendered = self.door.list.current();
        let mut who = self.who(context);
        who.allowed = Some(rendered.offered.clone());
        let handle = Arc::new(CallHandle::default());
        let (sink, notes) = match context.meta.get_progress_token() {
            Some(token) => {
                let (progress, notes) = Progress::new(token);
                (Arc::new(progress) as Arc<dyn Sink>, Some(notes))
            }
            None => (Arc::new(NoSink) as Arc<dyn Sink>, None),
        };
        let call = Call { tool, arguments, who, sink, snapshot: None, handle: Some(handle.clone()) };
        let outcome = self.finish(call, handle, notes, context).await;
        answer(outcome, &rendered)
    }

    /// Waits for a call, passing its progress on, and stops it when the client takes it back or the door closes.
    async fn finish(
        &self,
        call: Call,
        handle: Arc<CallHandle>,
        mut notes: Option<mpsc::Receiver<ProgressNotificationParam>>,
        context: &RequestContext<RoleServer>,
    ) -> Outcome {
        // A session that ends drops this future; nobody waits for the script any more.
        let stop = StopOnDrop(handle);
        let call = self.host().dispatcher().call_async(call);
        tokio::pin!(call);
        let mut stopped = false;
        loop {
            tokio::select! {
                biased;
                Some(note) = next(&mut notes) => {
                    let _ = context.peer.notify_progress(note).await;
                }
                outcome = &mut call => {
                    while let Some(note) = notes.as_mut().and_then(|notes| notes.try_recv().ok()) {
                        let _ = context.peer.notify_progress(note).await;
                    }
                    return outcome;
                }
                () = context.ct.cancelled(), if !stopped => {
                    stopped = true;
                    stop.0.cancel();
                }
                () = self.door.told_to_stop(), if !stopped => {
                    stopped = true;
                    stop.0.cancel();
                }
            }
        }
    }

    /// Tells the client of changes for as long as it is there.
    async fn follow(&self, peer: &Peer<RoleServer>, seen: u64) {
        let mut changes = Changes::new(&self.door, seen);
        loop {
            tokio::select! {
                () = changes.next() => {
                    if peer.notify_tool_list_changed().await.is_err() {
                        return;
                    }
                }
                () = gone(peer) => return,
            }
        }
    }
}

/// The next progress notification; never resolves where there are none to come.
async fn next(notes: &mut Option<mpsc::Receiver<ProgressNotificationParam>>) -> Option<ProgressNotificationParam> {
    match notes {
        Some(notes) => notes.recv().await,
        None => std::future::pending().await,
    }
}

async fn gone(peer: &Peer<RoleServer>) {
    while !peer.is_transport_closed() {
        tokio::time::sleep(LOOK).await;
    }
}

struct StopOnDrop(Arc<CallHandle>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Changes of the list, each told once; several that come while one is being told are told as one.
struct Changes {
    door: Arc<Door>,
    revisions: tokio::sync::watch::Receiver<u64>,
    seen: u64,
}

impl Changes {
    fn new(door: &Arc<Door>, seen: u64) -> Changes {
        Changes { door: door.clone(), revisions: door.host.revisions(), seen }
    }

    /// Resolves when the list differs from the one last told of; never again once the host has ended.
    async fn next(&mut self) {
        loop {
            let version = self.door.list.current().version;
            if version != self.seen {
                self.seen = version;
                return;
            }
            if self.revisions.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}

fn introduce(door: &Door, client: Option<&str>) -> Who {
    let mut who = Who::owner("mcp");
    let name = caller(client.unwrap_or_default());
    // Each client has a chat of its own, where its pictures are kept: what one is given, no other can name.
    who.chat = door.chat.clone().or_else(|| Some(format!("mcp:{name}").into()));
    who.caller = name.into();
    who
}

/// A client's name as a caller's: short, printable, and never that of the owner.
fn caller(name: &str) -> String {
    let name: String = name.chars().map(|c| if c.is_control() { ' ' } else { c }).take(CALLER).collect();
    match name.trim() {
        "" => "mcp".to_owned(),
        own if own.eq_ignore_ascii_case("owner") || own.eq_ignore_ascii_case("host") => format!("mcp {own}"),
        name => name.to_owned(),
    }
}

/// A call's end as the protocol says it. What names no tool that this door offers is a protocol error; every other failure is a
/// result that the model reads.
pub(super) fn answer(outcome: Outcome, rendered: &Rendered) -> Result<CallToolResult, ErrorData> {
    let unknown = outcome.error.as_ref().filter(|e| {
        let nowhere = outcome.plugin.is_empty() && e.kind() == Kind::NotFound;
        nowhere || !rendered.offered.contains(&outcome.tool)
    });
    if let Some(error) = unknown {
        return Err(ErrorData::invalid_params(error.to_string(), None));
    }
    let mut content = vec![ContentBlock::text(outcome.text)];
    if let Some(structured) = outcome.structured.as_ref().filter(|_| is_blank(&content)) {
        content = vec![ContentBlock::text(structured.to_string())];
    }
    content.extend(parts::content(&outcome.parts));
    let mut result = if outcome.ok { CallToolResult::success(content) } else { CallToolResult::error(content) };
    if outcome.ok {
        result.structured_content = outcome.structured;
    }
    if outcome.generation > 0 {
        let mut meta = JsonObject::new();
        meta.insert("lapidary/generation".to_owned(), outcome.generation.into());
        result.meta = Some(MetaObject(meta));
    }
    Ok(result)
}

fn is_blank(content: &[ContentBlock]) -> bool {
    content.iter().all(|block| block.as_text().is_some_and(|text| text.text.is_empty()))
}

impl ServerHandler for Session {
    fn get_info(&self) -> ServerConfig {
        let capabilities =
            ServerCapabilities::builder().enable_tools().enable_tool_list_changed().enable_resources().build();
        let own = Implementation::new("lapidary", env!("CARGO_PKG_VERSION")).with_title("Lapidary");
        ServerConfig::new(capabilities).with_server_info(own).with_instructions(INSTRUCTIONS)
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let result = self.negotiate_initialize(&request)?;
        let _ = self.introduced.who.set(introduce(&self.door, Some(&request.client_info.name)));
        let _ = self.start.set(self.door.list.current().version);
        context.peer.set_peer_info(request);
        Ok(result)
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        if self.following.swap(true, Ordering::AcqRel) {
            return;
        }
        #[cfg(feature = "server")]
        if let Some(parts) = context.extensions.get::<http::request::Parts>() {
            self.door.sessions.add(&parts.headers, &self.introduced);
        }
        let seen = self.start.get().copied().unwrap_or_else(|| self.door.list.current().version);
        let session = self.clone();
        tokio::spawn(async move { session.follow(&context.peer, seen).await });
    }

    fn accepted_subscription_filter(&self, _requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(SubscriptionFilter::builder().tools_list_changed().build())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = Changes::new(&self.door, self.door.list.current().version);
        loop {
            tokio::select! {
                () = changes.next() => {
                    if context.sink().notify_tool_list_changed().await.is_err() {
                        return Ok(());
                    }
                }
                () = context.cancelled() => return Ok(()),
                () = self.door.closed() => return Ok(()),
            }
        }
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        // The door puts the rendered tools in place of this empty list; looking makes sure that they are as new as this request.
        let _ = self.door.list.current();
        Ok(ListToolsResult::with_all_items(Vec::new()))
    }

    /// The rest of a long result, or a file that a tool gave the person.
    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let contents = match resource::route(&request.uri) {
            None => resource::rest(&self.door, &request.uri)?,
            Some(path) => {
                let _running = self.door.enter();
                // Whoever asks no more ends the handler's call.
                let stop = StopOnDrop(Arc::default());
                let answer = resource::answer(&self.door, &request.uri, path, self.who(&context), stop.0.clone());
                tokio::select! {
                    answer = answer => answer?,
                    () = context.ct.cancelled() => {
                        return Err(ErrorData::invalid_params(format!("`{}` is not asked for any more", request.uri), None));
                    }
                }
            }
        };
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        let snapshot = self.host().dispatcher().snapshot();
        snapshot.get(name).map(|tool| list::describe(tool))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = Arguments::Object(request.arguments.unwrap_or_default());
        Ok(self.run(request.name.into_owned(), arguments, &context).await?.into())
    }

    /// A call whose arguments are no object comes here: the dispatcher says what is wrong with them.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        if request.method != "tools/call" {
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None));
        }
        let Some(Value::Object(mut params)) = request.params else {
            return Err(ErrorData::invalid_params("`params` must be an object with `name` and `arguments`", None));
        };
        let Some(Value::String(name)) = params.remove("name") else {
            return Err(ErrorData::invalid_params("`params.name` must be the name of a tool, as text", None));
        };
        let arguments = match params.remove("arguments") {
            None | Some(Value::Null) => Arguments::Object(JsonObject::new()),
            Some(Value::Object(map)) => Arguments::Object(map),
            Some(Value::String(text)) => Arguments::Text(text),
            Some(other) => Arguments::Text(other.to_string()),
        };
        let mut result = self.run(name, arguments, &context).await?;
        let modern = context.protocol_version().is_some_and(|version| !version.has_initialize());
        if !modern {
            result.result_type = None;
        }
        serde_json::to_value(result)
            .map(CustomResult::new)
            .map_err(|e| ErrorData::internal_error(format!("the result cannot be written as JSON: {e}"), None))
    }
}

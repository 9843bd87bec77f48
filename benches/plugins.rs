//! The plugins that the benches load, and the bare Rhai that is the floor under them.

use lapidary::app::{Host, HostBuilder, Shipped, Watching};
use rhai::{AST, CallFnOptions, Dynamic, Engine, Map, Scope};
use std::path::{Path, PathBuf};

/// The arguments of every call.
pub const ARGUMENTS: &str = r#"{"text":"hello","count":3}"#;

/// A small plugin of the explicit form: one tool, made by `get_tools()`.
pub fn script(i: usize) -> String {
    format!(
        r#"const ENABLED = true;
const EMOJI = "x";

fn get_tools() {{
    [#{{ "type": "function", is_local: true, function: #{{ name: "tool_{i:03}", description: "Says the given text; tool number {i}, for measuring.",
        parameters: #{{ "type": "object", properties: #{{
            text: #{{ "type": "string", description: "What to say" }},
            count: #{{ "type": "integer" }},
            mode: #{{ "type": "string" }},
        }}, required: ["text"] }} }} }}]
}}

fn helper(a) {{ if a.contains("count") {{ a.count }} else {{ 1 }} }}

fn execute(name, arguments, config) {{
    if name == "tool_{i:03}" {{
        let t = arguments.text;
        return [`Did the thing to ${{t}}`, true];
    }}
    ["Unknown function", false]
}}
"#
    )
}

/// A fresh root with `n` of these plugins under `user/tools`.
pub fn root(n: usize) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a temporary folder can be made");
    let tools = tools(dir.path());
    std::fs::create_dir_all(&tools).expect("a temporary folder is writable");
    for i in 0..n {
        std::fs::write(tools.join(format!("t{i:03}.rhai")), script(i)).expect("a temporary folder is writable");
    }
    dir
}

/// Where single-file plugins are.
pub fn tools(root: &Path) -> PathBuf {
    root.join("user/tools")
}

/// A host over a root, without shipped plugins or a watcher unless `set` says otherwise.
pub fn host(root: &Path, set: impl FnOnce(HostBuilder) -> HostBuilder) -> Host {
    let builder = Host::builder().root(root).shipped(Shipped::LibraryOnly).watching(Watching::Off);
    set(builder).start().expect("a host starts on a fresh folder")
}

/// Rhai as an embedder would set it up in two lines.
pub fn bare_engine() -> Engine {
    let mut engine = Engine::new();
    engine.set_max_operations(1_000_000);
    engine
}

/// A bare call: JSON text in, `execute`, JSON text out. A function of its own in a profile.
#[inline(never)]
pub fn bare_call(engine: &Engine, ast: &AST, tool: &str, config: &Dynamic) -> String {
    let arguments: serde_json::Value = serde_json::from_str(ARGUMENTS).expect("the arguments are JSON");
    let arguments = rhai::serde::to_dynamic(arguments).expect("JSON is a value");
    let options = CallFnOptions::new().eval_ast(false);
    let result: Dynamic = engine
        .call_fn_with_options(
            options,
            &mut Scope::new(),
            ast,
            "execute",
            (Dynamic::from(tool.to_owned()), arguments, config.clone()),
        )
        .expect("the script runs");
    let pair = result.into_array().expect("a pair");
    let message = pair[0].clone().into_string().expect("a text");
    answer(&message, pair[1].as_bool().expect("a flag"))
}

/// The result as JSON text.
pub fn answer(message: &str, success: bool) -> String {
    serde_json::json!({ "message": message, "success": success }).to_string()
}

/// An empty `config`.
pub fn no_config() -> Dynamic {
    Dynamic::from(Map::new())
}

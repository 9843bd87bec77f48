//! Loading 500 small plugins beside reading, compiling and checking them with nothing around it; then one reload and one
//! settings save, each of which must leave every other plugin's tools the very same objects.

use crate::measure::{self, Pair, bare, process_cpu, ratio, rounds};
use crate::plugins;
use lapidary::app::Host;
use lapidary::plugin::tune::{Change, Mode};
use lapidary::tool::registry::LiveTool;
use rhai::{AST, Dynamic, Engine, Scope};
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const PLUGINS: usize = 500;
/// Tool files of the plugin whose settings are saved.
const FILES: usize = 4;

/// Measures loading.
pub fn run() {
    let root = plugins::root(PLUGINS);
    let empty = plugins::root(0);
    let engine = plugins::bare_engine();
    let plain = start(empty.path());
    println!("a host without plugins starts in {:.2} ms of CPU", plain.as_secs_f64() * 1e3);
    ratio(
        &Pair { name: "load/bare", limit: 1.5, rounds: 9, of: PLUGINS },
        || bare(|| spent(|| drop(black_box(load_bare(&engine, root.path()))))),
        || start(root.path()).saturating_sub(plain),
    );
    let host = plugins::host(root.path(), |b| b);
    reload(&host, root.path());
    host.stop();
    settings();
}

fn spent(work: impl FnOnce()) -> Duration {
    let start = process_cpu();
    work();
    process_cpu() - start
}

/// CPU time of all threads until a host on this root can be called.
fn start(root: &Path) -> Duration {
    let mut host = None;
    let took = spent(|| host = Some(plugins::host(root, |b| b)));
    if let Some(host) = host {
        host.stop();
    }
    took
}

/// Everything a loader must do, and nothing else: read, compile, ask for the tools, check their schemas.
fn load_bare(engine: &Engine, root: &Path) -> Vec<(AST, Vec<jsonschema::Validator>)> {
    let options = jsonschema::options();
    (0..PLUGINS)
        .map(|i| {
            let text =
                std::fs::read_to_string(plugins::tools(root).join(format!("t{i:03}.rhai"))).expect("the file is there");
            let ast = engine.compile(text).expect("the script compiles");
            let tools: Dynamic = engine.call_fn(&mut Scope::new(), &ast, "get_tools", ()).expect("the script runs");
            let tools: serde_json::Value = rhai::serde::from_dynamic(&tools).expect("tools are JSON");
            let checked = tools
                .as_array()
                .expect("a list")
                .iter()
                .map(|tool| options.build(&tool["function"]["parameters"]).expect("the schema is valid"))
                .collect();
            (ast, checked)
        })
        .collect()
}

fn tools(host: &Host) -> Vec<Arc<LiveTool>> {
    host.dispatcher().snapshot().iter().cloned().collect()
}

/// How many tools are other objects than before.
fn replaced(before: &[Arc<LiveTool>], after: &[Arc<LiveTool>]) -> usize {
    assert_eq!(before.len(), after.len(), "no tool may come or go");
    before.iter().zip(after).filter(|(a, b)| !Arc::ptr_eq(a, b)).count()
}

fn reload(host: &Host, root: &Path) {
    let file = plugins::tools(root).join("t007.rhai");
    let mut took: Vec<f64> = (0..rounds(200))
        .map(|round| {
            std::fs::write(&file, format!("{}// {round}\n", plugins::script(7))).expect("the file can be written");
            let before = tools(host);
            let cpu = spent(|| host.plugins().refresh(&["t007".into()]));
            assert_eq!(replaced(&before, &tools(host)), 1, "a reload may touch its own tools only");
            cpu.as_secs_f64() * 1e6
        })
        .collect();
    measure::value("reload of one of 500, CPU p50", measure::median(&mut took), "µs", 500.0);
}

/// A plugin folder whose every file makes its tools from the settings.
fn settings() {
    let root = plugins::root(PLUGINS - 1);
    let folder = root.path().join("user/plugins/tuned");
    std::fs::create_dir_all(folder.join("tools")).expect("a temporary folder is writable");
    let manifest = r#"{
        "name": "tuned", "version": "1.0.0", "description": "Tools made from settings, for measuring.",
        "capabilities": { "settings": [{ "key": "style", "type": "string", "label": "Style", "default": "plain" }] }
    }"#;
    std::fs::write(folder.join("plugin.json"), manifest).expect("a temporary folder is writable");
    for i in 0..FILES {
        let text = plugins::script(900 + i)
            .replace("fn get_tools() {", "fn get_tools() {\n    let style = settings::get(\"style\");")
            .replace("\"Says the given text;", "`Says the given text in ${style} style` + \";");
        std::fs::write(folder.join(format!("tools/f{i}.rhai")), text).expect("a temporary folder is writable");
    }
    let host = plugins::host(root.path(), |b| b);
    let mut took: Vec<f64> = (0..rounds(100))
        .map(|round| {
            let before = tools(&host);
            let patch = serde_json::json!({ "style": format!("style {round}") });
            let change = Change::Patch(patch.as_object().expect("an object").clone());
            let cpu = spent(|| {
                host.plugins().tune("tuned", &change, Mode::Commit, None).expect("the settings are fine");
            });
            assert_eq!(replaced(&before, &tools(&host)), FILES, "a save may touch the tools of its own plugin only");
            let snapshot = host.dispatcher().snapshot();
            let spec = &snapshot.get("tool_900").expect("the tool is there").spec;
            assert!(
                spec.description.contains(&format!("style {round}")),
                "the description follows: {}",
                spec.description
            );
            cpu.as_secs_f64() * 1e3 / FILES as f64
        })
        .collect();
    measure::value("settings save for each file, CPU p50", measure::median(&mut took), "ms", 1.0);
    host.stop();
}

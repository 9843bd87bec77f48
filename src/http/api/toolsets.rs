//! `/api/toolsets`: the words that stand for several tools, and the sets that a person saved.

use super::Api;
use super::answer::{Answer, At, Sent, blocking};
use super::table::{Content, Op, delete, get, put};
use crate::app::Host;
use crate::base::error::{Error, Result, excerpt};
use crate::tool::port::catalog;
use crate::tool::saved;
use crate::tool::tokens;
use crate::tool::toolset::{self, Catalog, Saved};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

pub(super) fn ops() -> Vec<Op> {
    vec![
        get("/api/toolsets", "The words that stand for several tools", list).gives::<Toolsets>(),
        put("/api/toolsets/{name}", "Save a set of tools under a name", save).takes::<ToolsetSent>().gives::<Toolset>(),
        delete("/api/toolsets/{name}", "Delete a saved set", remove).answers(204, Content::Empty),
    ]
}

#[derive(Serialize, JsonSchema)]
struct Toolsets {
    /// All tools, then saved sets, categories and plugins.
    toolsets: Vec<Toolset>,
}

/// A word that stands for several tools.
#[derive(Serialize, JsonSchema)]
struct Toolset {
    /// The word.
    name: String,
    /// Where it comes from.
    kind: ToolsetKind,
    /// What was saved, of a saved set: also tools that are away now.
    #[serde(skip_serializing_if = "Option::is_none")]
    words: Option<Vec<String>>,
    /// The tools that a model gets of it now.
    tools: Vec<String>,
    /// About how many tokens they are.
    tokens: usize,
}

#[derive(Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum ToolsetKind {
    Builtin,
    Category,
    Plugin,
    Saved,
}

/// Makes toolsets, counting each tool once.
struct Maker<'a> {
    catalog: &'a Catalog<'a>,
    saved: &'a Saved,
    tokens: HashMap<String, usize>,
}

impl Maker<'_> {
    fn make(&self, name: &str, kind: ToolsetKind) -> Toolset {
        let selection = toolset::select(self.catalog, self.saved, &[name]);
        let tools: Vec<String> = selection.visible(self.catalog).into_iter().map(str::to_owned).collect();
        let words = match kind {
            ToolsetKind::Saved => self.saved.get(name).map(<[_]>::to_vec),
            ToolsetKind::Builtin | ToolsetKind::Category | ToolsetKind::Plugin => None,
        };
        let tokens = tools.iter().filter_map(|tool| self.tokens.get(tool)).sum();
        Toolset { name: name.to_owned(), kind, words, tools, tokens }
    }
}

fn with_maker<T>(host: &Host, work: impl FnOnce(&Maker) -> T) -> Result<T> {
    let saved = saved::load(host.paths())?;
    let snapshot = host.dispatcher().snapshot();
    let owners = host.services().scopes.owners();
    let catalog = catalog(&snapshot, &owners);
    let tokens = snapshot.iter().map(|tool| (tool.spec.name.clone(), tokens::of_tool(&tool.spec))).collect();
    Ok(work(&Maker { catalog: &catalog, saved: &saved, tokens }))
}

async fn list(State(api): State<Arc<Api>>) -> Answer<Json<Toolsets>> {
    let toolsets = blocking(&api, |host| {
        with_maker(host, |maker| {
            // A name that stands for several things is the first of these.
            let mut seen = BTreeSet::new();
            let mut out = vec![maker.make("all", ToolsetKind::Builtin)];
            let of_tools = |word: fn(&toolset::Entry) -> String| -> Vec<String> {
                let words: BTreeSet<String> =
                    maker.catalog.tools().iter().filter(|tool| !tool.hidden).map(word).collect();
                words.into_iter().collect()
            };
            let plugins = of_tools(|tool| tool.plugin.to_owned());
            let mut categories = of_tools(|tool| tool.category.to_owned());
            // A plugin without a category is its own.
            categories.retain(|category| !plugins.contains(category));
            let groups = [
                (ToolsetKind::Saved, maker.saved.names().map(str::to_owned).collect()),
                (ToolsetKind::Category, categories),
                (ToolsetKind::Plugin, plugins),
            ];
            for (kind, names) in groups {
                let mut names: Vec<String> = names;
                names.sort();
                out.extend(names.iter().filter(|name| seen.insert((*name).clone())).map(|name| maker.make(name, kind)));
            }
            out
        })
    });
    Ok(Json(Toolsets { toolsets: toolsets.await? }))
}

/// A set to save.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ToolsetSent {
    /// Names of tools, and words that stand for several: modules, sets, categories and plugins, as they are now.
    words: Vec<String>,
}

async fn save(
    State(api): State<Arc<Api>>,
    At(name): At<String>,
    Sent(sent): Sent<ToolsetSent>,
) -> Answer<Json<Toolset>> {
    let made = blocking(&api, move |host| {
        let tools = with_maker(host, |maker| {
            saved::valid_name(&name, maker.catalog)?;
            let before = maker.saved.get(&name).unwrap_or_default();
            saved::expand(maker.catalog, maker.saved, before, &sent.words)
        })??;
        let services = host.services();
        saved::put(host.paths(), &services.clock, &services.bus, &name, &tools)?;
        host.plugins().toolsets_changed();
        with_maker(host, |maker| maker.make(&name, ToolsetKind::Saved))
    });
    Ok(Json(made.await?))
}

async fn remove(State(api): State<Arc<Api>>, At(name): At<String>) -> Answer<StatusCode> {
    blocking(&api, move |host| {
        let services = host.services();
        if saved::load(host.paths())?.get(&name).is_none() {
            let shown = excerpt(&name, 80);
            return Err(Error::not_found(format!("no toolset `{shown}` is saved")).hint("GET /api/toolsets lists them"));
        }
        saved::delete(host.paths(), &services.clock, &services.bus, &name)?;
        host.plugins().toolsets_changed();
        Ok(())
    })
    .await?;
    Ok(StatusCode::NO_CONTENT)
}

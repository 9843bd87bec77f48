//! The swap: finished builds against what is live, and the registry entries they become (promise 3).
//! Called with builds that are done; nothing here runs a script or waits for one.

use super::discover::{self, Found, Location};
use super::load::{Draft, Generation, LoadedFile, RouteDraft};
use super::set::{Entry, Live, Plugins};
use super::source::{Entry as Kept, History};
use super::status::{Disk, WISH};
use crate::base::event::Event;
use crate::script::diagnostic::Diagnostic;
use crate::script::value;
use crate::service::permissions::{self, Missing};
use crate::service::settings;
use crate::tool::registry::{Absence, Code, LiveTool, Snapshot};
use crate::tool::route::LiveRoute;
use crate::tool::spec::Spec;
use rhai::Map;
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

impl Plugins {
    /// Takes finished builds in and what is gone out, in one swap; tells whether a tool's name came free.
    pub(super) fn commit_many(self: &Arc<Self>, built: Vec<(Arc<str>, Built)>, gone: &[Arc<str>]) -> bool {
        let mut freed = false;
        let mut live = Vec::new();
        let mut events = Vec::new();
        let mut retired = Vec::new();
        {
            let mut state = self.state();
            let mut next = Snapshot::clone(&self.snapshot.load());
            let mut changed = false;
            for name in gone {
                changed |= !next.of_plugin(name).is_empty();
                next.remove(name);
                next.absent.remove(name);
            }
            let known: BTreeSet<Arc<str>> =
                state.entries.iter().filter(|(_, e)| e.enabled).map(|(n, _)| n.clone()).collect();
            for (name, built) in built {
                let Some(entry) = state.entries.get_mut(&name) else { continue };
                if !entry.enabled {
                    continue;
                }
                match self.take(entry, &name, built, &mut next, &known) {
                    Taken::Same => {}
                    Taken::Mended { generation } => {
                        events.push(Event::PluginLive { plugin: name.to_string(), generation })
                    }
                    Taken::Live { differs, freed: names, live: now, old } => {
                        changed |= differs;
                        freed |= names;
                        events.push(Event::PluginLive { plugin: name.to_string(), generation: now.generation });
                        live.push(now);
                        retired.push(old);
                    }
                    Taken::Failed => {
                        let plugin = name.to_string();
                        let live = entry.live.as_ref().map(|g| g.number);
                        let disk = entry.number;
                        let summary = entry.disk.first().map(Diagnostic::summary).unwrap_or_default();
                        events.push(if matches!(entry.disk, Disk::Waits { .. }) {
                            Event::PluginWaits { plugin, live, disk, summary }
                        } else {
                            Event::PluginFailed { plugin, live, disk, summary }
                        });
                    }
                }
            }
            self.publish(next, changed);
        }
        for name in gone {
            self.register_scopes(name, None);
            self.bus.publish(Event::PluginGone { plugin: name.to_string() });
        }
        // Outside the lock: the last holder of an old generation starts its shutdown, and the history writes.
        drop(retired);
        let listener = self.on_live.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(listener) = listener {
            live.into_iter().for_each(|l| listener(l));
        }
        for event in events {
            match &event {
                Event::PluginLive { plugin, generation } => tracing::info!(%plugin, generation, "live"),
                Event::PluginFailed { plugin, live, disk, .. } => tracing::info!(%plugin, live, disk, "failed"),
                Event::PluginWaits { plugin, live, disk, .. } => tracing::info!(%plugin, live, disk, "waits for a yes"),
                _ => {}
            }
            self.bus.publish(event);
        }
        freed
    }

    /// From now on a plugin whose files do not load, and of which nothing is live, answers from the last good version that this
    /// history kept; so does one whose files ask for more than that version was granted. Neither a broken save nor a wish takes
    /// a tool away: not across a restart, and not from one who switches a plugin on again. Said before [`Plugins::start`].
    pub fn keep_past(&self, history: &History) {
        let _ = self.past.set(history.clone());
    }

    pub(super) fn revive(self: &Arc<Self>, names: &[Arc<str>]) {
        let broken: Vec<Found> = {
            let state = self.state();
            let broken = names
                .iter()
                .filter_map(|name| state.entries.get(name))
                .filter(|e| e.enabled && e.live.is_none() && e.disk.is_stopped());
            broken.map(|e| e.found.clone()).collect()
        };
        for found in broken {
            let (me, name) = (self.clone(), Arc::from(found.name.as_str()));
            if let Some(generation) = self.pool().run(move || me.last_good(&found)).flatten() {
                self.bring_back(&name, generation);
            }
        }
    }

    /// The last good version that the history kept, built once more. Runs scripts: for the threads of calls only.
    fn last_good(&self, found: &Found) -> Option<Generation> {
        let kept = self.last_kept(found)?;
        let history = self.past.get()?;
        // Checks every file's digest; a damaged version is no good one.
        history.files(&found.name, kept.generation).ok()?;
        let folder =
            self.loader.services.paths.history_dir(&found.name).join(kept.generation.to_string()).join("files");
        let location = match found.single_file() {
            Some(file) => Location::File(folder.join(file)),
            None => Location::Folder(folder),
        };
        self.loader.build(&Found { location, ..found.clone() }, kept.generation).ok()
    }

    /// What a version that nothing live stands before waits for: it asks for more than the last one of the history does.
    pub(super) fn waits_for(&self, new: &Generation, found: &Found) -> Vec<Diagnostic> {
        // Cheap things first: most plugins ask for nothing, and most are what they were.
        let remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        if new.declared.is_harmless() || remembered.get(&found.name).is_some_and(|mark| *mark.hash == *new.hash) {
            return Vec::new();
        }
        drop(remembered);
        let is_same = self.last_kept(found).is_none_or(|kept| *kept.hash == *new.hash);
        let last = if is_same { None } else { self.last_good(found) };
        last.map_or_else(Vec::new, |last| asks_for_more(&last, new, found))
    }

    fn last_kept(&self, found: &Found) -> Option<Kept> {
        self.past.get()?.list(&found.name).into_iter().find(|kept| kept.ok)
    }

    fn bring_back(&self, name: &Arc<str>, generation: Generation) {
        let number = generation.number;
        {
            let mut state = self.state();
            let Some(entry) = state.entries.get_mut(name).filter(|e| e.live.is_none()) else { return };
            let effective = settings::effective(&generation.fields, &self.stored(name));
            let settings = Arc::new(value::from_object(&effective.values).unwrap_or_default());
            let mut next = Snapshot::clone(&self.snapshot.load());
            // A name that somebody else took meanwhile stays theirs.
            if next.put(entry.rank, name, live_tools(&generation, &settings, &HashMap::new())).is_err() {
                return;
            }
            next.put_routes(name, live_routes(&generation, &settings));
            next.absent.remove(name);
            self.register_scopes(name, Some(&generation));
            entry.settings = settings;
            generation.went_live();
            entry.live = Some(Arc::new(generation));
            self.publish(next, true);
        }
        tracing::info!(plugin = %name, generation = number, "live again, from the history");
        self.bus.publish(Event::PluginLive { plugin: name.to_string(), generation: number });
    }

    fn take(
        &self,
        entry: &mut Entry,
        name: &Arc<str>,
        built: Built,
        next: &mut Snapshot,
        known: &BTreeSet<Arc<str>>,
    ) -> Taken {
        let fail = |entry: &mut Entry, next: &mut Snapshot, disk: Disk| {
            entry.number += 1;
            if entry.live.is_none() {
                let first = disk.first().map(Diagnostic::summary).unwrap_or_default();
                let absence =
                    if matches!(disk, Disk::Refused { .. }) { Absence::Refused(first) } else { Absence::Failed(first) };
                next.absent.insert(name.clone(), absence);
            }
            entry.disk = disk;
            Taken::Failed
        };
        let mut generation = match built {
            Ok(generation) => generation,
            Err(diagnostics) if diagnostics.is_empty() => return Taken::Same,
            Err(diagnostics) => {
                // The same fault again is not a new version.
                if entry.disk.is_stopped() && entry.disk.diagnostics() == diagnostics {
                    return Taken::Same;
                }
                let number = entry.number + 1;
                return fail(entry, next, Disk::stopped(number, diagnostics));
            }
        };
        let force = std::mem::take(&mut entry.force);
        if let Some(live) = &entry.live {
            if !force && live.hash == generation.hash && live.origin == generation.origin {
                let was_failed = entry.disk.is_stopped() || matches!(entry.disk, Disk::Refused { .. });
                entry.disk = Disk::of(&generation);
                // A fault that is gone again is news to whoever was told of it.
                return if was_failed { Taken::Mended { generation: live.number } } else { Taken::Same };
            }
            // A version that would lose a file that works now does not go live.
            let lost: Vec<Diagnostic> =
                live.files.iter().filter_map(|f| generation.broken.get(&f.path)).flatten().cloned().collect();
            if !lost.is_empty() {
                let number = entry.number + 1;
                if entry.disk.is_stopped() && entry.disk.diagnostics() == lost {
                    return Taken::Same;
                }
                return fail(entry, next, Disk::Failed { number, diagnostics: lost });
            }
        }
        if let Some(live) = &entry.live {
            let more = asks_for_more(live, &generation, &entry.found);
            if !more.is_empty() {
                let number = entry.number + 1;
                if entry.disk.is_stopped() && entry.disk.diagnostics() == more {
                    return Taken::Same;
                }
                return fail(entry, next, Disk::stopped(number, more));
            }
        }
        // The number that an earlier run gave to this very content is its number still.
        let remembered = self
            .remembered
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&**name)
            .filter(|mark| *mark.hash == *generation.hash && entry.live.is_none());
        let number = remembered.map_or(entry.number + 1, |mark| mark.generation);
        if number != generation.number {
            generation.renumber(number);
        }
        let absent: Vec<&String> =
            generation.manifest.requires_plugins.iter().filter(|r| !known.contains(r.as_str())).collect();
        let effective = settings::effective(&generation.fields, &self.stored(name));
        let settings = Arc::new(value::from_object(&effective.values).unwrap_or_default());
        let tools = live_tools(&generation, &settings, &HashMap::new());
        let old_tools = next.of_plugin(name).to_vec();
        if let Err(e) = next.put(entry.rank, name, tools) {
            let file = entry.found.place();
            let number = entry.number + 1;
            let diagnostics = vec![Diagnostic::from_error("conflict", file, &e)];
            return fail(entry, next, Disk::Refused { number, diagnostics });
        }
        next.put_routes(name, live_routes(&generation, &settings));
        next.absent.remove(name);
        self.register_scopes(name, Some(&generation));
        let differs = !same_to_a_reader(&old_tools, next.of_plugin(name));
        entry.number = entry.number.max(number);
        entry.disk = Disk::of(&generation);
        entry.notes =
            effective.notes.iter().map(|n| Diagnostic::warning("settings", settings_file(name), n.clone())).collect();
        entry.notes.extend(absent.iter().map(|required| {
            Diagnostic::warning(
                "manifest",
                entry.found.shown("plugin.json"),
                format!("it requires the plugin `{required}`, which is not here"),
            )
            .hint("its tools may fail until that plugin is there and on")
        }));
        entry.settings = settings;
        entry.refreshed.clear();
        let live = Live {
            plugin: name.clone(),
            is_shipped: generation.origin == discover::Origin::Shipped,
            generation: number,
            hash: generation.hash.clone(),
            // Only the history wants the bytes; the texts that diagnostics show are kept with the programs.
            sources: std::mem::take(&mut generation.sources),
        };
        generation.went_live();
        let old = entry.live.replace(Arc::new(generation));
        let freed = old_tools.iter().any(|t| next.get(&t.spec.name).is_none());
        Taken::Live { differs, freed, live, old }
    }

    /// Makes the scopes of a plugin those that its generation declares. The first owner of a key keeps it.
    pub(super) fn register_scopes(&self, name: &str, generation: Option<&Generation>) {
        let registry = &self.loader.services.scopes;
        let declared = generation.map(|g| g.manifest.capabilities.scopes.as_slice()).unwrap_or_default();
        for key in registry.owned_by(name) {
            if !declared.iter().any(|s| s.key == *key) {
                registry.unregister(&key, name);
            }
        }
        for scope in declared {
            // Keys were checked with the manifest; a key that somebody else owns stays theirs.
            let _ = registry.register(&scope.key, name, scope.default.as_deref());
        }
    }
}

/// What a build came to.
pub(super) type Built = Result<Generation, Vec<Diagnostic>>;

enum Taken {
    Same,
    /// What the disk holds is what is live again.
    Mended {
        generation: u64,
    },
    Live {
        differs: bool,
        freed: bool,
        live: Live,
        old: Option<Arc<Generation>>,
    },
    Failed,
}

/// A build whose thread died.
pub(super) fn lost() -> Diagnostic {
    Diagnostic::error("internal", "", "loading failed inside the host").hint("see the host's log")
}

pub(super) fn settings_file(name: &str) -> String {
    format!("user/webui/plugins/{name}.json")
}

impl Generation {
    /// From here on its files have something to shut down.
    fn went_live(&self) {
        self.files.iter().for_each(|f| f.unit.was_live.store(true, Ordering::Release));
    }

    fn renumber(&mut self, number: u64) {
        self.number = number;
        for file in &mut self.files {
            // Nobody else holds a unit that was just built.
            if let Some(unit) = Arc::get_mut(&mut file.unit) {
                unit.generation = number;
            }
        }
    }
}

/// The registry entries of a generation, under these settings and refreshed schemas.
pub(super) fn live_tools(
    generation: &Generation,
    settings: &Arc<Map>,
    refreshed: &HashMap<String, Arc<Spec>>,
) -> Vec<Arc<LiveTool>> {
    let tool = |file: &LoadedFile, draft: &Draft| {
        Arc::new(LiveTool {
            name: draft.spec.name.as_str().into(),
            spec: refreshed.get(&draft.spec.name).unwrap_or(&draft.spec).clone(),
            code: Code::Script(file.unit.clone()),
            plan: draft.plan.clone(),
            function: draft.function.clone(),
            category: draft.category.clone(),
            emoji: file.emoji.clone(),
            gated_by: draft.gated_by.clone(),
            settings: settings.clone(),
            pace: Default::default(),
        })
    };
    generation.files.iter().flat_map(|file| file.tools.iter().map(move |draft| tool(file, draft))).collect()
}

/// The routes of a generation, under these settings.
pub(super) fn live_routes(generation: &Generation, settings: &Arc<Map>) -> Vec<Arc<LiveRoute>> {
    let route = |file: &LoadedFile, draft: &RouteDraft| {
        let tool = Arc::new(LiveTool {
            name: draft.spec.name.as_str().into(),
            spec: draft.spec.clone(),
            code: Code::Script(file.unit.clone()),
            plan: [].into(),
            function: draft.function.clone(),
            category: generation.name().clone(),
            emoji: "".into(),
            gated_by: None,
            settings: settings.clone(),
            pace: Default::default(),
        });
        let (pattern, takes) = (draft.pattern.clone(), draft.takes.clone());
        Arc::new(LiveRoute { method: draft.method, pattern, media: draft.media, takes, tool })
    };
    generation.files.iter().flat_map(|file| file.routes.iter().map(move |draft| route(file, draft))).collect()
}

/// Whether a model or client that reads the lists would see no difference.
pub(super) fn same_to_a_reader(old: &[Arc<LiveTool>], new: &[Arc<LiveTool>]) -> bool {
    old.len() == new.len()
        && old.iter().zip(new).all(|(a, b)| {
            let (x, y) = (&a.spec, &b.spec);
            x.name == y.name
                && x.description == y.description
                && x.parameters == y.parameters
                && x.output_schema == y.output_schema
                && x.hidden == y.hidden
                && x.writes == y.writes
                && x.side_effect == y.side_effect
                && x.permissions == y.permissions
                && x.network == y.network
                && a.category == b.category
                && a.emoji == b.emoji
                && a.is_gated_off() == b.is_gated_off()
        })
}

/// What a new version asks for and was not granted, where the live one does without: it waits until the owner has said yes.
pub(super) fn asks_for_more(live: &Generation, new: &Generation, found: &Found) -> Vec<Diagnostic> {
    let (held, grants) = (live.plugin.grants.load(), new.plugin.grants.load());
    permissions::grown(&live.declared, &held, &new.declared, &grants)
        .iter()
        .map(|asked| {
            let message = format!("this version asks for `{asked}`, which version {} does without", live.number);
            let wish = Diagnostic::warning(WISH, found.place(), message);
            at_what_asks(wish, asked, new, found).hint(format!("lapidary grant {} {}", found.name, asked.argument()))
        })
        .collect()
}

/// Puts a wish at the line that asks for it, where there is one that names it.
fn at_what_asks(wish: Diagnostic, asked: &Missing, new: &Generation, found: &Found) -> Diagnostic {
    let word = asked.names.first().map_or(asked.permission.as_str(), String::as_str);
    for (path, bytes) in &new.sources {
        let Ok(text) = std::str::from_utf8(bytes) else { continue };
        // Elsewhere the word is only used.
        if path != "plugin.json" && !text.contains("PERMISSIONS") {
            continue;
        }
        let from = text.find("PERMISSIONS").or_else(|| text.find("\"permissions\"")).unwrap_or_default();
        if let Some(at) = text[from..].find(word).map(|at| from + at) {
            let start = text[..at].rfind('\n').map_or(0, |i| i + 1);
            let line = text[..at].matches('\n').count() + 1;
            let column = text[start..at].chars().count() + 1;
            let file = if found.single_file().is_some() { found.place() } else { found.shown(path) };
            return Diagnostic { file, ..wish }.at(text, line, column);
        }
    }
    wish
}

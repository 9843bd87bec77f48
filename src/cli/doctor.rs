//! `doctor`: what is wrong with this installation, and how to mend it. It changes nothing.

use super::context::{Context, Done, Stop, Verdict};
use super::print;
use crate::app::Host;
use crate::base::event::{Bus, Event};
use crate::base::file;
use crate::base::paths::Paths;
use crate::net::Outlet;
use crate::plugin::discover::{Origin, is_litter};
use crate::script::alloc;
use crate::service::credentials::{Source, Store};
use clap::Args;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Say what is wrong with this installation and how to mend it
#[derive(Args)]
pub struct Doctor {}

/// How bad a finding is.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Weight {
    Ok,
    Note,
    Bad,
}

/// One thing that was looked at.
#[derive(Serialize)]
struct Finding {
    weight: Weight,
    about: &'static str,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    mend: Option<String>,
}

#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn ok(&mut self, about: &'static str, text: impl Into<String>) {
        self.0.push(Finding { weight: Weight::Ok, about, text: text.into(), mend: None });
    }

    fn note(&mut self, about: &'static str, text: impl Into<String>, mend: impl Into<String>) {
        self.0.push(Finding { weight: Weight::Note, about, text: text.into(), mend: Some(mend.into()) });
    }

    fn bad(&mut self, about: &'static str, text: impl Into<String>, mend: impl Into<String>) {
        self.0.push(Finding { weight: Weight::Bad, about, text: text.into(), mend: Some(mend.into()) });
    }

    fn error(&mut self, about: &'static str, e: &crate::base::error::Error) {
        let mend = e.hint_text().unwrap_or("mend it, then run `lapidary doctor` again").to_owned();
        self.bad(about, e.message(), mend);
    }
}

/// What `user/lapidary.toml` says, as far as something can be wrong with it.
fn settings(paths: &Paths, found: &mut Findings) {
    let (config, broken) = crate::config::read(paths);
    let (network, wrong) = crate::config::network(&config, paths, broken.as_ref());
    broken.iter().for_each(|e| found.error("settings", e));
    wrong.iter().for_each(|e| found.error("network", e));
    let _ = crate::config::keep_credentials(&config).map_err(|e| found.error("settings", &e));
    match network.outlet {
        Outlet::Direct => {}
        Outlet::Through(_) => found.ok("network", "the internet is reached through the proxy of user/lapidary.toml"),
        Outlet::Closed(e) => found.bad("network", e.message(), e.user_action().unwrap_or_default()),
    }
}

/// What is stored for this user, wherever the root is.
fn credentials(paths: &Paths, found: &mut Findings) {
    let keep = crate::config::keep_credentials(&crate::config::read(paths).0).unwrap_or_default();
    let checked = match Store::new(Source::of_this_user().or_keep(keep)).check() {
        Ok(checked) => checked,
        Err(e) => return found.error("credentials", &e),
    };
    let closed = "closed to other users of this machine";
    match (checked.in_keyring, checked.in_file) {
        (0, 0) => found.ok("credentials", "none are stored"),
        (0, file) => found.ok("credentials", format!("{file} in the file, {closed}")),
        (keyring, 0) => found.ok("credentials", format!("{keyring} in the keyring")),
        (keyring, file) => {
            found.ok("credentials", format!("{keyring} in the keyring, and {file} in the file, {closed}"))
        }
    }
    if let Some(refused) = checked.refused {
        found.error("credentials", &refused.error());
    }
    for name in checked.gone {
        let mend = format!("lapidary credentials set {name}, or delete it");
        found.bad("credentials", format!("the keyring no longer has the credential `{name}`"), mend);
    }
}

impl Doctor {
    pub(super) fn run(&self, cx: &Context) -> Done {
        let mut found = Findings::default();
        let paths = cx.paths()?;
        // The folders of a workshop are made by any command; where they cannot be, nothing else can be said.
        match cx.workshop().map_err(Stop::into_error).and_then(|paths| paths.ensure()) {
            Ok(()) => {
                found.ok("root", format!("{} ({})", paths.root().display(), chosen_by(cx, &paths)));
                writable(&paths, &mut found);
                leftovers(&paths, &mut found);
                settings(&paths, &mut found);
                match started(cx) {
                    Ok((host, events)) => self.host(&host, events, &mut found),
                    Err(e) => found.error("host", &e),
                }
            }
            Err(e) => found.error("root", &e),
        }
        if alloc::is_installed() {
            found.ok("memory", "the allocator counts what scripts hold");
        } else {
            found.bad(
                "memory",
                "the counting allocator is not installed, so the memory budget does not hold",
                "use the lapidary program",
            );
        }
        credentials(&paths, &mut found);
        watches(&paths, &mut found);
        report(&found, cx)
    }

    fn host(&self, host: &Host, events: Vec<Event>, found: &mut Findings) {
        for event in events {
            if let Event::Notice { subject, message } = event
                && subject != "user/lapidary.toml"
            {
                found.note("files", format!("{subject}: {message}"), "look at the file");
            }
        }
        for notice in host.plugins().notices() {
            found.note("plugins", format!("{}: {}", notice.subject, notice.message), "see above");
        }
        let statuses = host.plugins().statuses();
        let mut good = 0;
        for status in &statuses {
            if let Some(first) = status.diagnostics.first().filter(|_| status.waiting) {
                good += 1;
                found.note(
                    "plugins",
                    format!("{}: {}", status.name, status.status),
                    first.hint.clone().unwrap_or_else(|| format!("lapidary info {}", status.name)),
                );
            } else if let Some(first) = status.diagnostics.first() {
                found.bad(
                    "plugins",
                    format!("{} does not load: {}", status.name, first.summary()),
                    format!("lapidary info {}", status.name),
                );
            } else if status.enabled {
                good += 1;
            }
            for left_out in &status.quarantined {
                found.bad(
                    "plugins",
                    format!("{}: the tool {} is left out: {}", status.name, left_out.tool, left_out.reason),
                    "mend its schema",
                );
            }
            // What a shipped plugin could do with a grant is an offer: nobody put it there.
            for missing in status.missing_permissions.iter().filter(|_| status.origin != Origin::Shipped.as_str()) {
                let mend = format!("lapidary grant {} {missing}", status.name);
                found.note("grants", format!("{} asks for {missing} and does not have it", status.name), mend);
            }
        }
        if file::is_held(&host.paths().host_mark()) {
            found.ok("host", "a host runs on this root; it and commands share its files under locks");
        } else {
            found.ok("host", "no host runs on this root now");
        }
        let off = statuses.iter().filter(|s| !s.enabled).count();
        let tools = host.dispatcher().snapshot().len();
        let off = if off == 0 { String::new() } else { format!(", {off} off") };
        found.ok("plugins", format!("{good} of {} load{off}; {}", statuses.len(), print::count(tools, "tool")));
    }
}

/// Starts a host and gives what it had to say meanwhile.
fn started(cx: &Context) -> Result<(Host, Vec<Event>), crate::base::error::Error> {
    let bus = Bus::default();
    let mut heard = bus.subscribe();
    let host = cx.builder().watching(crate::app::Watching::Off).brief().bus(bus).start()?;
    let mut events = Vec::new();
    while let Ok(event) = heard.try_recv() {
        events.push(event);
    }
    Ok((host, events))
}

#[expect(clippy::disallowed_methods, reason = "the root may be named by the environment")]
fn chosen_by(cx: &Context, paths: &Paths) -> &'static str {
    if cx.root.is_some() {
        "from --root"
    } else if std::env::var_os("LAPIDARY_ROOT").is_some_and(|v| !v.is_empty()) {
        "from LAPIDARY_ROOT"
    } else if std::env::current_dir().is_ok_and(|here| here.starts_with(paths.root())) {
        "the workshop around this folder"
    } else {
        "the data folder of this user"
    }
}

/// Every folder that the host writes to takes a file.
fn writable(paths: &Paths, found: &mut Findings) {
    let mut good = true;
    for folder in [paths.tools(), paths.plugins(), paths.webui_plugins(), paths.plugin_state()] {
        let probe = folder.join(format!(".doctor-{}.tmp", std::process::id()));
        let written = file::write_atomic(&probe, b"x");
        let _ = std::fs::remove_file(&probe);
        if let Err(e) = written {
            good = false;
            let e = e.context(paths.shown(&folder));
            found.error("disk", &e);
        }
    }
    if good {
        found.ok("disk", "every folder can be written");
    }
}

/// Files that were set aside because they could not be read, and halves of writes that a crash left.
fn leftovers(paths: &Paths, found: &mut Findings) {
    let mut aside = Vec::new();
    let mut halves = 0;
    walk(&paths.user(), 0, &mut |path, name| {
        if name.contains(".bad-") {
            aside.push(paths.shown(path));
        } else if name.starts_with('.') && name.ends_with(".tmp") && is_old(path) {
            halves += 1;
        }
    });
    for file in aside {
        found.note(
            "files",
            format!("{file} could not be read and was set aside"),
            "mend it and rename it back, or delete it",
        );
    }
    if halves > 0 {
        found.note(
            "files",
            format!("{} of interrupted writes in user/", print::count(halves, "leftover")),
            "delete .*.tmp files older than an hour",
        );
    }
}

#[expect(clippy::disallowed_methods, reason = "ages of files are told by the system's clock")]
fn is_old(path: &Path) -> bool {
    let age = path.metadata().and_then(|m| m.modified()).ok().and_then(|t| SystemTime::now().duration_since(t).ok());
    age.is_some_and(|age| age > Duration::from_secs(3600))
}

fn walk(folder: &Path, depth: usize, look: &mut dyn FnMut(&Path, &str)) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder && depth < 6 && name != "history" && !is_litter(&name) {
            walk(&path, depth + 1, look);
        } else if !is_folder {
            look(&path, &name);
        }
    }
}

/// Linux gives each user so many watches: a running host needs one for each folder.
fn watches(paths: &Paths, found: &mut Findings) {
    let limit = |name: &str| -> Option<usize> {
        std::fs::read_to_string(format!("/proc/sys/fs/inotify/{name}")).ok()?.trim().parse().ok()
    };
    let (Some(watches), Some(instances)) = (limit("max_user_watches"), limit("max_user_instances")) else {
        found.ok("watching", "files are followed as this system tells of changes");
        return;
    };
    let mut folders = 3;
    let roots: [PathBuf; 4] = [paths.tools(), paths.plugins(), paths.scripts(), paths.stdlib()];
    roots.iter().for_each(|root| count_folders(root, 0, &mut folders));
    if watches < folders * 4 {
        let mend = format!("sudo sysctl fs.inotify.max_user_watches={}", (folders * 16).max(65_536));
        found.bad("watching", format!("the system allows {watches} watches, and {folders} folders want one"), mend);
    } else if instances < 16 {
        let mend = "sudo sysctl fs.inotify.max_user_instances=128";
        found.note(
            "watching",
            format!("the system allows only {instances} watchers at once for all your programs"),
            mend,
        );
    } else {
        found.ok("watching", format!("{folders} folders to follow, {} watches allowed", print::grouped(watches)));
    }
}

fn count_folders(folder: &Path, depth: usize, count: &mut usize) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) && depth < 8 {
            *count += 1;
            count_folders(&entry.path(), depth + 1, count);
        }
    }
}

fn report(found: &Findings, cx: &Context) -> Done {
    let bad = found.0.iter().filter(|f| f.weight == Weight::Bad).count();
    let notes = found.0.iter().filter(|f| f.weight == Weight::Note).count();
    if cx.json {
        print::json(&found.0);
        return Ok(Verdict::of(bad == 0));
    }
    let width = found.0.iter().map(|f| f.about.len()).max().unwrap_or(0);
    for finding in &found.0 {
        let word = match finding.weight {
            Weight::Ok => "ok  ",
            Weight::Note => "note",
            Weight::Bad => "BAD ",
        };
        print::line(format_args!("{word}  {:width$}  {}", finding.about, finding.text));
        if let Some(mend) = &finding.mend {
            print::line(format_args!("      {:width$}  → {mend}", ""));
        }
    }
    print::line("");
    print::line(match (bad, notes) {
        (0, 0) => "All is well.".to_owned(),
        (0, n) => format!("All is well; {} to look at.", print::count(n, "note")),
        (n, _) => format!("{} to mend.", print::count(n, "thing")),
    });
    Ok(Verdict::of(bad == 0))
}

//! `credentials`: what plugins may use and never read. Values come from stdin or a prompt, never from the words of a command,
//! which other programs can see, and never go out again.

use super::context::{Context, Done, Stop, Verdict};
use super::print::{self, Table};
use crate::base::error::{Error, Kind};
use crate::config;
use crate::service::credentials::keyring::Refusal;
use crate::service::credentials::{Changed, Given, Keep, MAX_VALUE, Place, Source, Store};
use crate::service::secret::SHORTEST;
use clap::{Args, Subcommand};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{IsTerminal, Read};
use zeroize::Zeroizing;

/// Store keys, passwords and accounts for plugins
#[derive(Args)]
#[command(after_help = "\
Examples:
  lapidary credentials set weather --host api.example.org     asks for the value
  lapidary credentials set weather --keep --host a.example    changes only where it may be sent
  lapidary credentials set email/work --field address --field password --host mail.example.org
  lapidary grant forecast USE_SECRETS=weather                 lets a plugin use it

A value goes to the keyring of the desktop where one answers, else to a file that is closed to others; [credentials] store in
user/lapidary.toml, or LAPIDARY_CREDENTIALS_STORE, may say \"keyring\" or \"file\". Where neither has a value, the variable
LAPIDARY_CREDENTIAL_WEATHER counts, and LAPIDARY_CREDENTIAL_WEATHER_HOSTS with it.")]
pub struct Credentials {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Store a value, or the fields of an account; the value is asked for, or read from stdin
    Set(Set),
    /// What is stored, without values
    List,
    /// Delete a credential, wherever it is
    Delete {
        /// Its name
        name: String,
    },
    /// Move what is stored to the keyring, or back to the file
    Move {
        /// Names; all that are stored where none is given
        names: Vec<String>,
        /// Where to
        #[arg(long, value_name = "PLACE", value_parser = ["keyring", "file"])]
        to: String,
    },
    /// Have the keyring ask for its password, where it is locked
    Unlock,
}

#[derive(Args)]
struct Set {
    /// Its name; of an account kind/scope, as in email/work
    name: String,
    /// A host that the value may be sent to, or *.domain; several by several
    #[arg(long = "host", value_name = "HOST")]
    hosts: Vec<String>,
    /// A field of an account; each is asked for, or read from stdin, one a line
    #[arg(long = "field", value_name = "FIELD", conflicts_with = "keep")]
    fields: Vec<String>,
    /// A field that plugins may read as text
    #[arg(long = "public", value_name = "FIELD")]
    public: Vec<String>,
    /// Keep what is stored; change only where it may be sent, and what is public
    #[arg(long)]
    keep: bool,
}

impl Credentials {
    pub(super) fn run(&self, cx: &Context) -> Done {
        let (config, broken) = cx.paths().map(|paths| config::read(&paths)).unwrap_or_default();
        // Whoever wrote where values go must not find them elsewhere because of a slip of the pen.
        let keep = match broken {
            Some(e) => Err(e.hint("mend it first: it may say where credentials are kept")),
            None => config::keep_credentials(&config),
        };
        let with = |keep: Keep| {
            let source = Source::of_this_user().or_keep(keep);
            Store::new(if std::io::stderr().is_terminal() { source.attended() } else { source })
        };
        match &self.what {
            What::Set(set) => set.run(&with(keep?), cx),
            What::Move { names, to } => relocate(&with(keep?), names, to, cx),
            What::List => list(&with(keep.unwrap_or_default()), cx),
            What::Delete { name } => delete(&with(keep.unwrap_or_default()), name, cx),
            What::Unlock => {
                with(keep?).unlock()?;
                if cx.json {
                    print::json(&json!({ "unlocked": true }));
                } else {
                    print::line("the keyring is open");
                }
                Ok(Verdict::Good)
            }
        }
    }
}

fn delete(store: &Store, name: &str, cx: &Context) -> Done {
    let changed = store.delete(name)?;
    if cx.json {
        print::json(&json!({ "credential": name, "deleted": true }));
    } else {
        print::line(format_args!("deleted {name}"));
    }
    tell_left(&changed);
    Ok(Verdict::Good)
}

fn relocate(store: &Store, names: &[String], to: &str, cx: &Context) -> Done {
    let place = Place::from_word(to).unwrap_or(Place::File);
    let names: Vec<String> = if names.is_empty() {
        let stored = store.list()?.into_iter().filter(|listed| Place::from_word(listed.from).is_some());
        stored.map(|listed| listed.name).collect()
    } else {
        names.to_vec()
    };
    for name in &names {
        let changed = store.relocate(name, place)?;
        if !cx.json {
            print::line(format_args!("{name} is in the {place}"));
        }
        tell_left(&changed);
    }
    if cx.json {
        print::json(&json!({ "credentials": names, "place": place }));
    } else if names.is_empty() {
        print::line("Nothing is stored.");
    }
    Ok(Verdict::Good)
}

/// A value that should be gone and is not is told each time.
fn tell_left(changed: &Changed) {
    if let Some(refused) = &changed.left {
        print::note(format_args!(
            "note: {refused}, so a value that is not used any more may still be in it; the next change tries again to remove it"
        ));
    }
}

impl Set {
    fn run(&self, store: &Store, cx: &Context) -> Done {
        // Before anybody types: what is stored has to be readable, and a name that is kept has to be there.
        let before = store.list()?.into_iter().find(|listed| listed.name == self.name);
        if self.keep && before.is_none() && self.hosts.is_empty() {
            return Err(Error::not_found(format!("there is no credential `{}` to keep", self.name))
                .hint("leave out --keep to store a value, or see `lapidary credentials list`")
                .into());
        }
        let (mut value, mut fields) = (None, BTreeMap::new());
        if self.fields.is_empty() && !self.keep {
            value = Some(ask(&format!("value of {}", self.name))?);
        } else if !self.keep {
            fields = ask_fields(&self.name, &self.fields)?;
        }
        let is_short = value.iter().chain(fields.values()).any(|value| value.len() < SHORTEST);
        let public: BTreeSet<String> = self.public.iter().cloned().collect();
        let hosts = (!self.hosts.is_empty()).then(|| self.hosts.clone());
        let changed = store.set(&self.name, Given { value, fields, public, hosts })?;
        let listed = store.list()?.into_iter().find(|listed| listed.name == self.name);
        let hosts = listed.map(|listed| listed.hosts).unwrap_or_default();
        if cx.json {
            let (is_new, place) = (changed.is_new, changed.place);
            print::json(&json!({ "credential": self.name, "new": is_new, "hosts": hosts, "place": place }));
        } else {
            let word = if changed.is_new { "stored" } else { "changed" };
            let place = changed.place.map(|place| format!(" in the {place}")).unwrap_or_default();
            print::line(format_args!("{word} {}{place}{}", self.name, sent_to(&hosts)));
        }
        // Where there is none, nothing was to be expected of it.
        if let Some(refused) = changed.refused.as_ref().filter(|refused| !matches!(refused, Refusal::Absent(_))) {
            print::note(format_args!("note: {refused}, so the value is in the file, which is closed to others"));
        }
        tell_left(&changed);
        if hosts.is_empty() {
            print::note(format_args!(
                "note: it is sent nowhere until it names a host: lapidary credentials set {} --keep --host HOST",
                self.name
            ));
        }
        if is_short {
            print::note(format_args!(
                "note: a value of fewer than {SHORTEST} bytes is not looked for in results and logs, because it would be found everywhere"
            ));
        }
        Ok(Verdict::Good)
    }
}

fn sent_to(hosts: &[String]) -> String {
    if hosts.is_empty() { String::new() } else { format!("; it goes to {}", hosts.join(" ")) }
}

fn list(store: &Store, cx: &Context) -> Done {
    let all = store.list()?;
    if cx.json {
        print::json(&json!({ "file": store.path(), "credentials": all }));
        return Ok(Verdict::Good);
    }
    if all.is_empty() {
        print::line("Nothing is stored. lapidary credentials set NAME --host HOST");
        return Ok(Verdict::Good);
    }
    let mut table = Table::new(&["NAME", "FIELDS", "SENT TO", "VALUE IN"]);
    for listed in all {
        let fields =
            listed.fields.iter().map(|f| if listed.public.contains(f) { format!("{f} (public)") } else { f.clone() });
        let fields = fields.collect::<Vec<_>>().join(" ");
        let from = if listed.from == "environment" { listed.variable } else { listed.from.to_owned() };
        let hosts = if listed.hosts.is_empty() { "nowhere".to_owned() } else { listed.hosts.join(" ") };
        table.row([listed.name, fields, hosts, from]);
    }
    print::line(table.render(0));
    Ok(Verdict::Good)
}

/// What is secret, wiped when it goes.
pub(super) type Value = Zeroizing<String>;

/// One value: everything on stdin, or what a person types when asked for it by name.
pub(super) fn ask(what: &str) -> Result<Value, Stop> {
    if std::io::stdin().is_terminal() {
        return prompt(&format!("{what} (not shown): "));
    }
    whole_stdin()
}

/// Everything on stdin, without the end of its last line.
pub(super) fn whole_stdin() -> Result<Value, Stop> {
    let mut text = all_of_stdin()?;
    let end = text.strip_suffix("\r\n").or_else(|| text.strip_suffix('\n')).map_or(text.len(), str::len);
    text.truncate(end);
    Ok(text)
}

/// The value of each field: a line each.
fn ask_fields(name: &str, fields: &[String]) -> Result<BTreeMap<String, Value>, Stop> {
    let mut given = BTreeMap::new();
    if std::io::stdin().is_terminal() {
        for field in fields {
            given.insert(field.clone(), prompt(&format!("{field} of {name} (not shown): "))?);
        }
        return Ok(given);
    }
    let text = all_of_stdin()?;
    let lines: Vec<&str> = text.lines().collect();
    if lines.len() != fields.len() {
        return Err(Stop::usage(
            format!("stdin has {}, for {}", print::count(lines.len(), "line"), print::count(fields.len(), "field")),
            "write the value of each field on a line of its own, in the order of the options",
        ));
    }
    for (field, line) in fields.iter().zip(lines) {
        given.insert(field.clone(), Zeroizing::new(line.to_owned()));
    }
    Ok(given)
}

fn all_of_stdin() -> Result<Value, Error> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(4096));
    let most = 16 * MAX_VALUE as u64;
    let read = std::io::stdin().lock().take(most + 1).read_to_end(&mut bytes);
    read.map_err(|e| crate::base::error::io("cannot read the value from stdin", &e))?;
    if bytes.len() as u64 > most {
        return Err(Error::new(Kind::TooLarge, format!("stdin has more than {most} bytes"))
            .hint("give the value alone, and nothing else"));
    }
    let text = std::str::from_utf8(&bytes);
    // What the error of the conversion says could quote the value.
    text.map(|text| Zeroizing::new(text.to_owned())).map_err(|_| {
        Error::invalid("the value on stdin is not UTF-8 text").hint("give what is not text as base64, say")
    })
}

/// A line that a person types and nobody sees.
#[cfg(unix)]
pub(super) fn prompt(what: &str) -> Result<Value, Stop> {
    use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};

    /// Gives the terminal back as it was.
    struct Restore(Termios);
    impl Drop for Restore {
        fn drop(&mut self) {
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Flush, &self.0);
        }
    }

    const INTERRUPT: u8 = 3;
    let failed = |e: rustix::io::Errno| Error::internal(format!("the terminal cannot be told to show nothing: {e}"));
    let before = tcgetattr(std::io::stdin()).map_err(failed)?;
    let mut quiet = before.clone();
    // Ctrl+C ends the line instead of the program, which would leave the terminal silent.
    quiet.local_modes.remove(LocalModes::ECHO | LocalModes::ISIG);
    quiet.special_codes[SpecialCodeIndex::VEOL] = INTERRUPT;
    let restore = Restore(before);
    tcsetattr(std::io::stdin(), OptionalActions::Flush, &quiet).map_err(failed)?;
    print::prompt(what);
    let mut typed = Zeroizing::new(Vec::with_capacity(4096));
    let read = read_line(&mut typed, INTERRUPT);
    drop(restore);
    print::note("");
    read.map_err(|e| crate::base::error::io("cannot read from the terminal", &e))?;
    if typed.contains(&INTERRUPT) {
        return Err(Error::new(Kind::Cancelled, "nothing was stored").into());
    }
    let line = std::str::from_utf8(&typed).map_err(|_| Error::invalid("what was typed is not UTF-8 text"))?;
    let mut line = Zeroizing::new(line.to_owned());
    let end = line.trim_end_matches(['\r', '\n']).len();
    line.truncate(end);
    Ok(line)
}

/// Reads up to the end of a line, or to `last`.
#[cfg(unix)]
fn read_line(typed: &mut Vec<u8>, last: u8) -> std::io::Result<()> {
    use std::io::BufRead;
    let mut stdin = std::io::stdin().lock();
    loop {
        let piece = stdin.fill_buf()?;
        let end = piece.iter().position(|b| *b == b'\n' || *b == last);
        let taken = end.map_or(piece.len(), |at| at + 1);
        typed.extend_from_slice(&piece[..taken]);
        stdin.consume(taken);
        if end.is_some() || taken == 0 {
            return Ok(());
        }
    }
}

/// Nothing that is shown while it is typed.
#[cfg(not(unix))]
pub(super) fn prompt(_what: &str) -> Result<Value, Stop> {
    Err(Stop::usage(
        "this terminal shows what is typed",
        "give the value on stdin: lapidary credentials set NAME < FILE",
    ))
}

//! `user/lapidary.toml`: the host's own settings, and the commented example that a first start leaves there.

use crate::base::error::{Error, Kind, Result};
use crate::base::file;
use crate::base::paths::{Paths, environment};
use crate::net::{Outlet, Proxy, Settings, Trusted};
use crate::service::credentials::Keep;
use crate::service::journal::Limits;
use rhai::Map;
use serde_json::Value;

/// The parsed file.
pub type Config = toml::Table;

/// Most bytes of the file.
const MAX: u64 = 1 << 20;

/// What a first start writes, so that a person sees what there is to set. Every line is a comment: defaults stay defaults.
const EXAMPLE: &str = r#"# Lapidary's own settings. A plugin's settings are in user/webui/plugins/<name>.json.
# Remove the `#` before what you want to change; a restart reads it.

# [server]
# addr = "127.0.0.1:8470"        # another address than loopback needs a password or a token of yours
# token = ""                     # your own token, `Authorization: Bearer ..`; made on the first start where empty
# url = "https://workshop.lan"   # where people find it, where that is not the address itself: links lead there
# hosts = ["workshop.lan"]       # further names in `Host`, beside loopback, the address itself and that of `url`
# origins = ["https://app.lan"]  # further origins of pages that may ask
# tls_cert = "cert.pem"          # files in user/ with a certificate and its key: everything is over TLS then
# tls_key = "key.pem"
# trusted_proxies = ["127.0.0.1"]  # whose X-Forwarded-For and X-Forwarded-Proto are believed
# rate = 50                      # requests a second for each caller; without it no limit on this machine, 100 beyond it

# [privacy]
# allow_unflagged_tools = false  # let tools that do not say `is_local` run in private chats

# [credentials]
# store = "auto"                 # or "keyring" or "file": where new ones are kept; LAPIDARY_CREDENTIALS_STORE says it too

# [net]
# proxy = "socks5h://127.0.0.1:1080"  # or http://..; what goes to the internet goes through it, or nowhere
# proxy_user = ""                # where the proxy asks for a user name and a password
# proxy_password = ""
# extra_ca = "home-ca.pem"       # a file in user/ with certificates that TLS trusts beside the system's

# [journal]                      # the calls that were made: lapidary journal
# keep = true                    # false keeps none
# max_mb = 64                    # the oldest go when all of them are more than this
# max_days = 30                  # .. or older than this
# max_text_kb = 256              # a longer text of one call is cut

# [[models]]                     # a model that answers in chats; the first is used unless a chat says otherwise
# name = "local"                 # how chats name it
# base_url = "http://127.0.0.1:8081/v1"  # any server that speaks as OpenAI's does
# model = "qwen2.5-coder-1.5b-instruct"  # how the server names it
# credential = ""                # a credential's name, never a key: lapidary credentials set <name>
# local = true                   # may serve private chats; beyond the local network only with `trusted = true`
# vision = false                 # whether it sees pictures
# tools = true                   # whether it calls tools by itself
# context = 8192                 # tokens that fit into it; without it nothing is left out
# dialect = "openai"             # or anthropic, gemini, llama, plain: how tools are written for it
# temperature = 0.7
# max_tokens = 2048              # of one answer
# first_s = 240                  # seconds until the first piece of an answer
# idle_s = 60                    # .. and between two

# [config]                       # what scripts read as `config.<key>`: text, numbers, lists; never a secret
# locale = "en"
# timezone = "Europe/Prague"
"#;

/// Reads the file. One that is not there is empty; one that does not parse counts as empty too, for defaults are safe, and
/// comes with what is wrong.
#[must_use]
pub fn read(paths: &Paths) -> (Config, Option<Error>) {
    match file::read_text_capped(&paths.lapidary_toml(), MAX) {
        Ok(text) => match text.parse::<Config>() {
            Ok(config) => (config, None),
            Err(e) => {
                let line = e.span().map_or(0, |span| 1 + text[..span.start].matches('\n').count());
                let error = Error::invalid(format!("user/lapidary.toml:{line}: {}", e.message()))
                    .hint("the defaults are in force until it is mended");
                (Config::new(), Some(error))
            }
        },
        Err(e) if e.kind() == Kind::NotFound => (Config::new(), None),
        Err(e) => (Config::new(), Some(e)),
    }
}

/// Leaves the commented example where there is no file yet; tells whether it did.
///
/// # Errors
/// What writing says.
pub fn write_example(paths: &Paths) -> Result<bool> {
    let path = paths.lapidary_toml();
    if path.exists() {
        return Ok(false);
    }
    file::write_atomic(&path, EXAMPLE.as_bytes()).map(|()| true)
}

/// A boolean under `[table] key`, or `false`.
#[must_use]
pub fn flag(config: &Config, table: &str, key: &str) -> bool {
    config.get(table).and_then(|t| t.get(key)).and_then(toml::Value::as_bool).unwrap_or(false)
}

/// What `[net]` says about the network, and what is wrong with it. A proxy that may be wanted and cannot be read closes the
/// way to the internet: a request that should have gone through it must not go around it.
#[must_use]
pub fn network(config: &Config, paths: &Paths, broken: Option<&Error>) -> (Settings, Vec<Error>) {
    let mut settings = Settings::default();
    let mut wrong = Vec::new();
    if let Some(error) = broken.filter(|_| may_name(paths, "proxy")) {
        let closed =
            Error::new(Kind::UpstreamUnavailable, "the internet is closed: the settings of this host do not parse")
                .with_user_action("mend user/lapidary.toml, which may name a proxy")
                .hint(error.message().to_owned());
        settings.outlet = Outlet::Closed(closed.with_retryable(false));
    }
    let Some(net) = config.get("net") else { return (settings, wrong) };
    match proxy(net) {
        Ok(None) => {}
        Ok(Some(proxy)) => settings.outlet = Outlet::Through(proxy),
        Err(e) => {
            let e = e.context("user/lapidary.toml, [net] proxy");
            wrong.push(e.clone());
            let closed =
                Error::new(Kind::UpstreamUnavailable, "the internet is closed: the proxy's setting cannot be used")
                    .with_user_action("mend `[net] proxy` in user/lapidary.toml");
            settings.outlet = Outlet::Closed(closed.with_retryable(false));
        }
    }
    let trusted = text(net, "extra_ca").and_then(|file| {
        file.map(|file| file::read_capped(&paths.user().join(file), MAX).and_then(|pem| Trusted::parse(&pem)))
            .transpose()
    });
    match trusted {
        Ok(trusted) => settings.trusted = trusted.unwrap_or_default(),
        Err(e) => wrong.push(paths.conceal(e).context("user/lapidary.toml, [net] extra_ca")),
    }
    (settings, wrong)
}

/// What `[journal]` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keeping {
    /// Whether calls are kept at all.
    pub keep: bool,
    /// How much.
    pub limits: Limits,
}

/// What `[journal]` says about the journal of calls, and what is wrong with it. Where that cannot be read, nothing is kept: it may
/// have said so.
#[must_use]
pub fn journal(config: &Config, paths: &Paths, broken: Option<&Error>) -> (Keeping, Vec<Error>) {
    let keep = broken.is_none() || !may_name(paths, "journal");
    let mut keeping = Keeping { keep, limits: Limits::default() };
    let mut wrong = Vec::new();
    let Some(journal) = config.get("journal") else { return (keeping, wrong) };
    let mut bad = |what: String| wrong.push(Error::invalid(format!("user/lapidary.toml, [journal] {what}")));
    let Some(table) = journal.as_table() else {
        bad("must be a table".to_owned());
        return (Keeping { keep: false, ..keeping }, wrong);
    };
    let mut number = |key: &str, least: i64, most: i64| match table.get(key) {
        None => None,
        Some(toml::Value::Integer(n)) if (least..=most).contains(n) => Some(n.unsigned_abs()),
        Some(_) => {
            bad(format!("{key} must be a whole number from {least} to {most}"));
            None
        }
    };
    let limits = &mut keeping.limits;
    limits.max_bytes = number("max_mb", 1, 100_000).map_or(limits.max_bytes, |mb| mb << 20);
    limits.max_days =
        number("max_days", 1, 36_500).map_or(limits.max_days, |days| u32::try_from(days).unwrap_or(u32::MAX));
    limits.max_text =
        number("max_text_kb", 1, 8192).map_or(limits.max_text, |kb| usize::try_from(kb << 10).unwrap_or(usize::MAX));
    match table.get("keep") {
        None => {}
        Some(toml::Value::Boolean(keep)) => keeping.keep = *keep,
        Some(_) => {
            bad("keep must be true or false".to_owned());
            keeping.keep = false;
        }
    }
    const KEYS: [&str; 4] = ["keep", "max_mb", "max_days", "max_text_kb"];
    for key in table.keys().filter(|key| !KEYS.contains(&key.as_str())) {
        bad(format!("{key} is not known; there are {}", KEYS.join(", ")));
    }
    (keeping, wrong)
}

fn text<'a>(table: &'a toml::Value, key: &str) -> Result<Option<&'a str>> {
    match table.get(key) {
        None => Ok(None),
        Some(toml::Value::String(text)) if text.trim().is_empty() => Ok(None),
        Some(toml::Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(Error::invalid(format!("`{key}` must be text"))),
    }
}

fn proxy(net: &toml::Value) -> Result<Option<Proxy>> {
    if !net.is_table() {
        return Err(Error::invalid("`net` must be a table").hint("write [net], and below it proxy = \"..\""));
    }
    let Some(address) = text(net, "proxy")? else { return Ok(None) };
    let proxy = Proxy::parse(address)?;
    match (text(net, "proxy_user")?, text(net, "proxy_password")?) {
        (None, None) => Ok(Some(proxy)),
        (user, password) => proxy.with_login(user.unwrap_or_default(), password.unwrap_or_default()).map(Some),
    }
}

/// The variable that says, before the file does, where new credentials are kept.
const CREDENTIALS: &str = "LAPIDARY_CREDENTIALS_STORE";

/// Where new credentials are kept, as the environment or `[credentials]` says.
///
/// # Errors
/// `invalid_arguments` for a word that is none of the three.
pub fn keep_credentials(config: &Config) -> Result<Keep> {
    keep(environment(CREDENTIALS).as_deref(), config)
}

fn keep(variable: Option<&str>, config: &Config) -> Result<Keep> {
    let read = |word: &str| {
        Keep::from_word(word).ok_or_else(|| {
            Error::invalid(format!("`{word}` is no way to keep credentials"))
                .hint("it is \"auto\", \"keyring\" or \"file\"")
        })
    };
    if let Some(word) = variable {
        return read(word).map_err(|e| e.context(CREDENTIALS));
    }
    let place = "user/lapidary.toml, [credentials] store";
    match config.get("credentials") {
        None => Ok(Keep::default()),
        Some(toml::Value::Table(table)) => match table.get("store") {
            None => Ok(Keep::default()),
            Some(toml::Value::String(word)) => read(word).map_err(|e| e.context(place)),
            Some(_) => Err(Error::invalid("it must be text").context(place)),
        },
        Some(_) => Err(Error::invalid("`credentials` must be a table")
            .context("user/lapidary.toml")
            .hint("write [credentials], and below it store = \"..\"")),
    }
}

/// Whether a file that does not parse says something of this word, or cannot even be read.
fn may_name(paths: &Paths, word: &str) -> bool {
    file::read_capped(&paths.lapidary_toml(), MAX).map_or(true, |bytes| {
        String::from_utf8_lossy(&bytes)
            .lines()
            .any(|line| !line.trim_start().starts_with('#') && line.to_ascii_lowercase().contains(word))
    })
}

/// What every script reads as `config`: never a secret, a path or another plugin's setting. `own` comes from the embedder.
#[must_use]
pub fn for_scripts(config: &Config, paths: &Paths, own: Map) -> Map {
    let mut map = Map::new();
    let root_name = paths.root().file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    map.insert("version".into(), env!("CARGO_PKG_VERSION").into());
    map.insert("root_name".into(), root_name.into());
    map.insert("locale".into(), "en".into());
    map.insert("timezone".into(), crate::service::time::local_zone().into());
    if let Some(keys) = config.get("config").and_then(toml::Value::as_table) {
        for (key, value) in keys {
            let json = serde_json::to_value(value).unwrap_or(Value::Null);
            if let Ok(value) = crate::script::value::from_json(&json) {
                map.insert(key.as_str().into(), value);
            }
        }
    }
    map.extend(own);
    map
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_example_parses_and_changes_nothing() {
        assert!(EXAMPLE.parse::<Config>().unwrap().is_empty());
        let bare: String = EXAMPLE
            .lines()
            .filter_map(|l| l.strip_prefix("# "))
            .filter(|l| l.starts_with('[') || l.contains(" = "))
            .map(|l| format!("{l}\n"))
            .collect();
        let config = bare.parse::<Config>().unwrap();
        assert_eq!(
            config.keys().cloned().collect::<Vec<_>>(),
            ["config", "credentials", "journal", "models", "net", "privacy", "server"]
        );
    }

    #[test]
    fn the_network_is_open_through_a_proxy_or_closed_as_the_file_says() {
        let dir = tempfile::tempdir().unwrap();
        let paths = Paths::at(dir.path());
        paths.ensure().unwrap();
        let direct = |s: &Settings| matches!(s.outlet, Outlet::Direct);
        let through = |s: &Settings| matches!(s.outlet, Outlet::Through(_));
        let closed = |s: &Settings| matches!(s.outlet, Outlet::Closed(_));
        type Holds<'a> = &'a dyn Fn(&Settings) -> bool;
        let rows: [(&str, Holds, usize); 15] = [
            ("", &direct, 0),
            ("[net]\n", &direct, 0),
            ("[net]\nproxy = \"\"\n", &direct, 0),
            ("[net]\nproxy = \"socks5h://127.0.0.1:1080\"\n", &through, 0),
            ("[net]\nproxy = \"http://p:3128\"\nproxy_user = \"u\"\nproxy_password = \"s3cret\"\n", &through, 0),
            ("[net]\nproxy = \"socks4://s3cret:1\"\n", &closed, 1),
            ("[net]\nproxy = \"socks5h://s3cret:99999\"\n", &closed, 1),
            ("[net]\nproxy = 1080\n", &closed, 1),
            ("[net]\nproxy = \"p\"\nproxy_user = 1\n", &closed, 1),
            ("net = \"socks5h://s3cret\"\n", &closed, 1),
            ("[net\nproxy = \"socks5h://s3cret\"\n", &closed, 0),
            ("[net]\n# proxy = \"p\"\n[server\n", &direct, 0),
            ("[server]\naddr = \n", &direct, 0),
            ("[net]\nextra_ca = \"none.pem\"\n", &direct, 1),
            ("[net]\nextra_ca = 1\nproxy = \"p\"\n", &through, 1),
        ];
        for (text, holds, faults) in rows {
            std::fs::write(paths.lapidary_toml(), text).unwrap();
            let (config, broken) = read(&paths);
            let (settings, wrong) = network(&config, &paths, broken.as_ref());
            assert!(holds(&settings), "{text}");
            assert_eq!(wrong.len(), faults, "{text}: {wrong:?}");
            assert!(!format!("{wrong:?}").contains("s3cret"), "{wrong:?}");
        }
    }

    #[test]
    fn the_journal_is_kept_within_limits_unless_the_file_says_otherwise_or_cannot_be_read() {
        let of = |keep, mb: u64, days, kb: usize| Keeping {
            keep,
            limits: Limits { max_bytes: mb << 20, max_days: days, max_text: kb << 10 },
        };
        let rows = [
            ("", of(true, 64, 30, 256), 0),
            ("[journal]\n", of(true, 64, 30, 256), 0),
            ("[journal]\nkeep = false\n", of(false, 64, 30, 256), 0),
            ("[journal]\nmax_mb = 1\nmax_days = 7\nmax_text_kb = 16\n", of(true, 1, 7, 16), 0),
            ("[journal]\nmax_mb = 0\nmax_days = -1\nmax_text_kb = 9999\n", of(true, 64, 30, 256), 3),
            ("[journal]\nmax_mb = \"1\"\nmax_days = 1.5\n", of(true, 64, 30, 256), 2),
            ("[journal]\nkeep = \"no\"\n", of(false, 64, 30, 256), 1),
            ("[journal]\nkept = false\n", of(true, 64, 30, 256), 1),
            ("journal = false\n", of(false, 64, 30, 256), 1),
            ("[journal]\nkeep = fal", of(false, 64, 30, 256), 0),
            ("# [journal]\n[server]\naddr = \n", of(true, 64, 30, 256), 0),
        ];
        let dir = tempfile::tempdir().unwrap();
        let paths = Paths::at(dir.path());
        paths.ensure().unwrap();
        for (text, expected, faults) in rows {
            std::fs::write(paths.lapidary_toml(), text).unwrap();
            let (config, broken) = read(&paths);
            let (keeping, wrong) = journal(&config, &paths, broken.as_ref());
            assert_eq!((keeping, wrong.len()), (expected, faults), "{text}: {wrong:?}");
        }
    }

    #[test]
    fn credentials_are_kept_where_the_environment_says_and_then_the_file() {
        let rows = [
            (None, "", Ok(Keep::Auto)),
            (None, "[credentials]\n", Ok(Keep::Auto)),
            (None, "[credentials]\nstore = \"auto\"\n", Ok(Keep::Auto)),
            (None, "[credentials]\nstore = \"keyring\"\n", Ok(Keep::Keyring)),
            (None, "[credentials]\nstore = \"file\"\n", Ok(Keep::File)),
            (Some("file"), "[credentials]\nstore = \"keyring\"\n", Ok(Keep::File)),
            (Some("auto"), "[credentials]\nstore = 1\n", Ok(Keep::Auto)),
            (Some("File"), "", Err("LAPIDARY_CREDENTIALS_STORE: ")),
            (Some(" file"), "", Err("LAPIDARY_CREDENTIALS_STORE: ")),
            (None, "[credentials]\nstore = \"keychain\"\n", Err("[credentials] store: ")),
            (None, "[credentials]\nstore = \"\"\n", Err("[credentials] store: ")),
            (None, "[credentials]\nstore = true\n", Err("[credentials] store: ")),
            (None, "credentials = \"file\"\n", Err("user/lapidary.toml: ")),
        ];
        for (variable, text, wanted) in rows {
            let told = keep(variable, &text.parse::<Config>().unwrap());
            match (told, wanted) {
                (Ok(told), Ok(wanted)) => assert_eq!(told, wanted, "{variable:?} {text}"),
                (Err(e), Err(part)) => assert!(e.message().contains(part), "{e}"),
                (told, _) => panic!("{variable:?} {text}: {told:?}"),
            }
        }
    }

    #[test]
    fn a_file_that_does_not_parse_names_its_line_and_counts_as_empty() {
        let dir = tempfile::tempdir().unwrap();
        let paths = Paths::at(dir.path());
        paths.ensure().unwrap();
        std::fs::write(paths.lapidary_toml(), "[server]\naddr = \n").unwrap();
        let (config, error) = read(&paths);
        assert!(config.is_empty());
        assert!(error.unwrap().message().starts_with("user/lapidary.toml:2:"));
        assert!(!write_example(&paths).unwrap());
    }
}

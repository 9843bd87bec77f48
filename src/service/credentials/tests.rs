//! The store over files of its own: what is kept, who may read it, and what is never said.

#![allow(clippy::unwrap_used)]

mod keyring;

use super::*;
use crate::base::file;
use std::fs;

const VALUE: &str = "s3cret value";

fn store() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::new(Source::file(dir.path().join("deep/lapidary/credentials.json")));
    (dir, store)
}

fn value(text: &str) -> Given {
    Given { value: Some(Zeroizing::new(text.to_owned())), ..Given::default() }
}

fn fields(pairs: &[(&str, &str)], public: &[&str]) -> Given {
    Given {
        fields: pairs.iter().map(|(k, v)| ((*k).to_owned(), Zeroizing::new((*v).to_owned()))).collect(),
        public: public.iter().map(|p| (*p).to_owned()).collect(),
        ..Given::default()
    }
}

fn to(hosts: &[&str], given: Given) -> Given {
    Given { hosts: Some(hosts.iter().map(|h| (*h).to_owned()).collect()), ..given }
}

/// How many are in a keyring and in the file.
#[track_caller]
fn stored(store: &Store) -> (usize, usize) {
    let checked = store.check().unwrap();
    assert!(checked.refused.is_none() && checked.gone.is_empty(), "{checked:?}");
    (checked.in_keyring, checked.in_file)
}

/// What a script is told of a file that cannot be used names no place.
#[track_caller]
fn for_scripts(e: Error) {
    let told = format!("{e} {:?}", e.hint_text());
    assert!(!told.contains(VALUE) && !told.contains("json") && told.contains("lapidary doctor"), "{told}");
}

#[test]
fn what_is_stored_comes_back_as_a_secret_bound_to_its_hosts() {
    let (_dir, store) = store();
    assert_eq!(stored(&store), (0, 0));
    assert_eq!(store.secret("weather").unwrap_err().kind(), Kind::NotFound);
    assert!(store.set("weather", to(&["API.example.org."], value(VALUE))).unwrap().is_new);
    let secret = store.secret("weather").unwrap();
    assert_eq!((secret.name(), secret.expose()), ("weather", VALUE));
    assert!(secret.fits("api.example.org") && !secret.fits("example.org"));
    // A new value keeps the hosts, new hosts keep the value.
    assert!(!store.set("weather", value("another")).unwrap().is_new);
    assert_eq!(stored(&store), (0, 1));
    assert!(store.secret("weather").unwrap().fits("api.example.org"));
    store.set("weather", to(&["b.example"], Given::default())).unwrap();
    let secret = store.secret("weather").unwrap();
    assert!(secret.expose() == "another" && secret.fits("b.example") && !secret.fits("api.example.org"));
    store.delete("weather").unwrap();
    assert_eq!(store.secret("weather").unwrap_err().kind(), Kind::NotFound);
    assert_eq!(store.delete("weather").unwrap_err().kind(), Kind::NotFound);
    assert_eq!(stored(&store), (0, 0));
}

#[test]
fn an_account_has_fields_and_only_its_owner_s_public_ones_are_text() {
    let (_dir, store) = store();
    store
        .set(
            "email/work",
            to(&["mail.example.org"], fields(&[("address", "ann@example.org"), ("password", VALUE)], &[])),
        )
        .unwrap();
    store.set("email/work", fields(&[("label", "Work")], &["label"])).unwrap();
    store.set("email/home", fields(&[("password", "other")], &[])).unwrap();
    store.set("git/x", value(VALUE)).unwrap();
    let account = store.account("email", "work").unwrap();
    let shown: Vec<String> = account
        .iter()
        .map(|(name, field)| match field {
            Field::Public(text) => format!("{name}={text}"),
            Field::Secret(secret) => format!("{name}={secret} {}", secret.fits("mail.example.org")),
        })
        .collect();
    assert_eq!(shown, ["address=Secret true", "label=Work", "password=Secret true"]);
    assert!(!format!("{account:?}").contains(VALUE));
    assert!(matches!(store.account("git", "x").unwrap()["value"], Field::Secret(_)));
    assert_eq!(store.scopes("email").unwrap(), ["home", "work"]);
    assert_eq!(store.scopes("nothing").unwrap(), Vec::<String>::new());
    // Never another scope's.
    for (kind, scope) in [("email", "default"), ("email", "Work"), ("emai", "work"), ("email", "w")] {
        assert_eq!(store.account(kind, scope).unwrap_err().kind(), Kind::NotFound, "{kind} {scope}");
    }
    for (kind, scope) in [("email/work", "x"), ("email", "a b"), ("", "work "), ("email", "\u{e9}")] {
        assert_eq!(store.account(kind, scope).unwrap_err().kind(), Kind::InvalidArguments, "{kind} {scope}");
    }
    let e = store.secret("email/work").unwrap_err();
    assert!(e.hint_text().unwrap().contains(r#"credentials::account("email", "work")"#), "{e}");
}

#[test]
fn what_makes_no_sense_is_refused_and_changes_nothing() {
    let (_dir, store) = store();
    store.set("a", to(&["a.example"], value(VALUE))).unwrap();
    let before = fs::read(store.path().unwrap()).unwrap();
    let big = "x".repeat(MAX_VALUE + 1);
    let rows = [
        ("", value("x")),
        ("a b", value("x")),
        ("../x", value("")),
        ("/x", value("x")),
        ("x/", value("x")),
        ("b", value("")),
        ("b", value(&big)),
        ("b", to(&["https://x.example"], value("x"))),
        ("b", to(&["*"], value("x"))),
        ("b", fields(&[("a b", "x")], &[])),
        ("b", fields(&[("k", "x")], &["other"])),
        ("a", fields(&[("k", "x")], &[])),
    ];
    for (name, given) in rows {
        let e = store.set(name, given).unwrap_err();
        assert!(!e.to_string().contains(VALUE), "{e}");
        assert_eq!(fs::read(store.path().unwrap()).unwrap(), before, "{name}: {e}");
    }
}

#[test]
fn where_the_file_has_no_value_the_environment_may_have_one() {
    let (dir, store) = store();
    let source = Source::file(dir.path().join("deep/lapidary/credentials.json")).environment(|name| {
        let value = match name {
            "LAPIDARY_CREDENTIAL_WEATHER" => "from-env",
            "LAPIDARY_CREDENTIAL_WEATHER_HOSTS" => "a.example, *.b.example",
            "LAPIDARY_CREDENTIAL_EMAIL_WORK" => "pass",
            "LAPIDARY_CREDENTIAL_BARE" => "bare",
            _ => return None,
        };
        Some(value.to_owned())
    });
    let with = Store::new(source);
    let secret = with.secret("weather").unwrap();
    assert!(secret.expose() == "from-env" && secret.fits("a.example") && secret.fits("x.b.example"));
    assert!(!with.secret("bare").unwrap().fits("a.example"));
    assert!(matches!(with.account("email", "work").unwrap()["value"], Field::Secret(_)));
    assert_eq!(with.secret("other").unwrap_err().kind(), Kind::NotFound);
    assert_eq!(store.secret("weather").unwrap_err().kind(), Kind::NotFound);
    // Hosts may stand in the file and the value in the environment; a value in the file wins.
    store.set("weather", to(&["c.example"], Given::default())).unwrap();
    let listed = with.list().unwrap();
    assert_eq!((listed[0].from, listed[0].hosts.as_slice()), ("environment", &["c.example".to_owned()][..]));
    assert_eq!(store.list().unwrap()[0].from, "nowhere");
    assert!(with.secret("weather").unwrap().fits("c.example"));
    store.set("weather", value("from-file")).unwrap();
    assert_eq!(with.secret("weather").unwrap().expose(), "from-file");
    assert_eq!(with.list().unwrap()[0].from, "file");
    let shown = serde_json::to_string(&with.list().unwrap()).unwrap();
    assert!(!shown.contains("from-file") && shown.contains("LAPIDARY_CREDENTIAL_WEATHER"), "{shown}");
}

#[test]
fn a_file_that_cannot_be_read_is_left_alone_and_nothing_of_it_is_said() {
    let (_dir, store) = store();
    store.set("a", value(VALUE)).unwrap();
    let path = store.path().unwrap();
    for text in [
        format!("{{\"credentials\": {{\"a\": \"{VALUE}\"}}}}"),
        format!("{{\"credentials\": {{\"a\": {{\"{VALUE}\": 1}}}}}}"),
        format!("{{\"{VALUE}\": {{}}}}"),
        VALUE.to_owned(),
        String::new(),
    ] {
        file::write_atomic_private(path, text.as_bytes()).unwrap();
        let set = store.set("b", value("x")).unwrap_err();
        assert_eq!(set.kind(), Kind::InvalidArguments);
        assert!(set.message().contains("line "), "{set}");
        assert!(!format!("{set} {:?}", set.hint_text()).contains(VALUE), "{set}");
        for_scripts(store.secret("a").unwrap_err());
        assert_eq!(fs::read_to_string(path).unwrap(), text);
    }
}

#[cfg(unix)]
#[test]
fn the_file_is_its_owner_s_alone_from_the_first_byte_and_an_open_one_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let (dir, store) = store();
    store.set("a", value(VALUE)).unwrap();
    let path = store.path().unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(path), 0o600);
    assert_eq!(mode(&dir.path().join("deep/lapidary")), 0o700);
    for open in [0o640, 0o604, 0o644, 0o620, 0o601, 0o666] {
        fs::set_permissions(path, fs::Permissions::from_mode(open)).unwrap();
        for_scripts(store.secret("a").unwrap_err());
        for_scripts(store.account("a", "b").unwrap_err());
        for_scripts(store.scopes("a").unwrap_err());
        for e in [store.list().unwrap_err(), store.set("b", value("x")).unwrap_err(), store.check().unwrap_err()] {
            assert_eq!(e.kind(), Kind::PermissionDenied);
            assert!(e.hint_text().unwrap().contains("chmod 600"), "{e}");
        }
        assert_eq!(mode(path), open);
    }
    fs::set_permissions(path, fs::Permissions::from_mode(0o400)).unwrap();
    assert!(store.secret("a").is_ok());
    store.set("b", value("x")).unwrap();
    assert_eq!(mode(path), 0o600);
}

#[test]
fn two_writers_lose_nothing() {
    let (_dir, store) = store();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let store = &store;
            scope.spawn(move || {
                for n in 0..10 {
                    store.set(&format!("w{writer}.{n}"), value("some value")).unwrap();
                }
            });
        }
    });
    assert_eq!(store.list().unwrap().len(), 40);
}

#[test]
fn a_store_without_a_place_has_nothing_and_takes_nothing() {
    let store = Store::default();
    assert_eq!(store.secret("a").unwrap_err().kind(), Kind::NotFound);
    assert_eq!(store.list().unwrap(), Vec::new());
    assert_eq!(store.set("a", value("x")).unwrap_err().kind(), Kind::Disabled);
}

#[test]
fn a_plugin_may_use_what_it_was_granted_whether_or_not_it_exists() {
    let e = permit(&Grants::default(), "weather", "key").unwrap_err();
    assert_eq!(e.kind(), Kind::PermissionDenied);
    let hint = e.hint_text().unwrap();
    assert!(hint.contains("const PERMISSIONS = [#{USE_SECRETS: [\"key\"]}];"), "{hint}");
    assert!(hint.ends_with("lapidary grant weather USE_SECRETS=key"), "{hint}");
}

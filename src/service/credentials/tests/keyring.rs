//! The store over a keyring that can be locked, slow or gone: where values are, what is never in the file, and that whatever was
//! read stays known to those who take it out of texts.

use super::super::keyring::{Item, Keyring, Refusal, Value};
use super::super::known::{Age, Known, RECENT};
use super::*;
use crate::service::permissions::{Declared, Record, effective};
use crate::service::secret::Used;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// A keyring in memory.
#[derive(Default)]
struct Fake(Mutex<State>);

#[derive(Default)]
struct State {
    held: HashMap<String, String>,
    refuses: Option<Refusal>,
    /// Whether a person would unlock it.
    opens: bool,
    asked: usize,
    /// A file that nobody can write any more once something is put.
    spoils: Option<std::path::PathBuf>,
}

impl Fake {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    fn refuse(&self, refusal: impl Into<Option<Refusal>>) {
        self.state().refuses = refusal.into();
    }

    fn values(&self) -> Vec<String> {
        let mut values: Vec<String> = self.state().held.values().cloned().collect();
        values.sort();
        values
    }

    fn asked(&self) -> usize {
        self.state().asked
    }

    fn answer<T>(&self, answer: impl FnOnce(&mut State) -> T) -> std::result::Result<T, Refusal> {
        let mut state = self.state();
        state.asked += 1;
        match state.refuses.clone() {
            Some(refusal) => Err(refusal),
            None => Ok(answer(&mut state)),
        }
    }
}

impl Keyring for Fake {
    fn get(&self, items: &[Item]) -> std::result::Result<Vec<Option<Value>>, Refusal> {
        self.answer(|s| items.iter().map(|i| s.held.get(&i.id).cloned().map(Zeroizing::new)).collect())
    }

    fn put(&self, item: &Item, value: &str) -> std::result::Result<(), Refusal> {
        self.answer(|s| {
            assert_eq!(s.held.insert(item.id.clone(), value.to_owned()), None, "an id is used once");
            if let Some(path) = s.spoils.take() {
                fs::remove_file(&path).unwrap();
                fs::create_dir(&path).unwrap();
            }
        })
    }

    fn remove(&self, item: &Item) -> std::result::Result<(), Refusal> {
        self.answer(|s| drop(s.held.remove(&item.id)))
    }

    fn unlock(&self) -> std::result::Result<(), Refusal> {
        let mut state = self.state();
        match (state.opens, state.refuses.clone()) {
            (true, Some(Refusal::Locked)) => state.refuses = None,
            (_, Some(refusal)) => return Err(refusal),
            _ => {}
        }
        Ok(())
    }
}

struct Kit {
    dir: tempfile::TempDir,
    fake: Arc<Fake>,
}

impl Kit {
    fn new() -> Kit {
        Kit { dir: tempfile::tempdir().unwrap(), fake: Arc::default() }
    }

    fn source(&self) -> Source {
        Source::file(self.dir.path().join("credentials.json")).keyring(self.fake.clone())
    }

    fn store(&self, keep: Keep) -> Store {
        Store::new(self.source().keep(keep))
    }

    fn file(&self) -> String {
        fs::read_to_string(self.dir.path().join("credentials.json")).unwrap()
    }
}

fn from(store: &Store) -> Vec<(String, &'static str)> {
    store.list().unwrap().into_iter().map(|listed| (listed.name, listed.from)).collect()
}

/// What a plugin may do that was granted these credentials.
fn granted(names: &[&str]) -> Grants {
    let declared = Declared::parse(&serde_json::json!([{ "USE_SECRETS": names }])).unwrap();
    let secrets = names.iter().map(|name| (*name).to_owned()).collect();
    effective(&Record { secrets, ..Record::default() }, &declared)
}

/// A text in which nothing that `store` knows may be left.
fn cleaned(store: &Store, text: &str) -> String {
    let used = Used::default();
    store.add_permitted(&granted(&["weather", "email/work", "other"]), &used);
    used.redactor().map_or_else(|| text.to_owned(), |redactor| redactor.text(text).into_owned())
}

#[test]
fn a_value_is_in_the_keyring_and_its_rules_are_in_the_file() {
    let kit = Kit::new();
    let store = kit.store(Keep::Auto);
    let changed = store.set("weather", to(&["a.example"], value(VALUE))).unwrap();
    assert_eq!((changed.is_new, changed.place, changed.refused), (true, Some(Place::Keyring), None));
    store.set("email/work", fields(&[("label", "Work post"), ("password", "a long password")], &["label"])).unwrap();
    assert_eq!(stored(&store), (2, 0));
    let file = kit.file();
    for hidden in [VALUE, "Work post", "a long password"] {
        assert!(!file.contains(hidden), "{file}");
    }
    let secret = store.secret("weather").unwrap();
    assert!(secret.expose() == VALUE && secret.fits("a.example") && !secret.fits("b.example"));
    let account = store.account("email", "work").unwrap();
    assert!(matches!(&account["label"], Field::Public(text) if text == "Work post"));
    assert!(matches!(&account["password"], Field::Secret(secret) if secret.expose() == "a long password"));
    assert!(store.secret("email/work").unwrap_err().hint_text().unwrap().contains("credentials::account"));
    assert_eq!(store.scopes("email").unwrap(), ["work"]);
    let asked = kit.fake.asked();
    assert_eq!(from(&store), [("email/work".to_owned(), "keyring"), ("weather".to_owned(), "keyring")]);
    assert_eq!(store.list().unwrap()[0].fields, ["label", "password"]);
    assert_eq!(kit.fake.asked(), asked, "a list needs no keyring");
    // Rules change without the value; another value has another id, and the old one goes.
    store.set("weather", to(&["b.example"], Given::default())).unwrap();
    assert!(store.secret("weather").unwrap().fits("b.example"));
    store.set("weather", value("another value")).unwrap();
    assert_eq!(store.secret("weather").unwrap().expose(), "another value");
    store.set("email/work", fields(&[("password", "a newer password")], &[])).unwrap();
    assert_eq!(kit.fake.values(), ["another value", r#"{"label":"Work post","password":"a newer password"}"#]);
    assert_eq!(store.delete("weather").unwrap().left, None);
    store.delete("email/work").unwrap();
    assert!(kit.fake.values().is_empty() && store.list().unwrap().is_empty());
    assert_eq!(store.secret("weather").unwrap_err().kind(), Kind::NotFound);
}

#[test]
fn where_a_value_goes_is_the_owner_s_choice_and_the_keyring_s_answer() {
    let refusals =
        [Refusal::Absent("of a test"), Refusal::Locked, Refusal::Slow, Refusal::TooLarge, Refusal::Failed("x".into())];
    for refusal in refusals.into_iter().map(Some).chain([None]) {
        for keep in [Keep::Auto, Keep::Keyring, Keep::File] {
            let kit = Kit::new();
            kit.fake.refuse(refusal.clone());
            let store = kit.store(keep);
            let set = store.set("weather", value(VALUE));
            match (keep, &refusal) {
                (Keep::Auto | Keep::Keyring, None) => assert_eq!(set.unwrap().place, Some(Place::Keyring)),
                (Keep::Auto, Some(_)) => {
                    let changed = set.unwrap();
                    assert_eq!((changed.place, &changed.refused), (Some(Place::File), &refusal));
                    assert_eq!(store.secret("weather").unwrap().expose(), VALUE);
                }
                (Keep::Keyring, Some(_)) => {
                    let e = set.unwrap_err();
                    assert!(e.message().contains("`weather`") && !format!("{e:?}").contains(VALUE), "{e}");
                    assert!(store.list().unwrap().is_empty() && store.path().is_none_or(|path| !path.exists()));
                }
                (Keep::File, _) => {
                    assert_eq!(set.unwrap().place, Some(Place::File));
                    assert_eq!(kit.fake.asked(), 0);
                }
            }
        }
    }
    // What did not answer in time may have done it all the same: it is removed when it can be.
    let kit = Kit::new();
    kit.fake.refuse(Refusal::Slow);
    let changed = kit.store(Keep::Auto).set("weather", value(VALUE)).unwrap();
    assert_eq!((changed.left, kit.fake.asked()), (Some(Refusal::Slow), 1), "it is not waited for a second time");
    assert!(kit.file().contains("left"));
    kit.fake.refuse(None);
    kit.store(Keep::Auto).set("weather", to(&["a.example"], Given::default())).unwrap();
    assert!(!kit.file().contains("left"));
    // Without a keyring at all, `auto` is the file, and whoever wants a keyring gets none.
    let (_dir, store) = super::store();
    assert_eq!(store.set("a", value(VALUE)).unwrap().refused, None);
    let strict = Store::new(Source::file(store.path().unwrap()).keep(Keep::Keyring));
    assert_eq!(strict.set("b", value(VALUE)).unwrap_err().kind(), Kind::Disabled);
}

#[test]
fn a_locked_keyring_is_opened_for_a_person_and_for_nobody_else() {
    let kit = Kit::new();
    kit.store(Keep::Auto).set("weather", value(VALUE)).unwrap();
    kit.fake.refuse(Refusal::Locked);
    kit.fake.state().opens = true;
    let e = kit.store(Keep::Auto).secret("weather").unwrap_err();
    assert_eq!(e.kind(), Kind::Disabled);
    assert!(e.hint_text().unwrap().contains("lapidary credentials unlock") && !e.to_string().contains(VALUE), "{e}");
    let attended = Store::new(kit.source().attended());
    assert_eq!(attended.secret("weather").unwrap_err().kind(), Kind::Disabled, "a plugin makes nobody type a password");
    assert_eq!(attended.set("other", value("other value")).unwrap().place, Some(Place::Keyring));
    assert_eq!(attended.secret("weather").unwrap().expose(), VALUE);
    kit.fake.refuse(Refusal::Locked);
    kit.fake.state().opens = false;
    assert_eq!(attended.unlock().unwrap_err().kind(), Kind::Disabled);
    kit.fake.state().opens = true;
    attended.unlock().unwrap();
}

#[test]
fn what_is_in_the_file_moves_when_it_is_told_to_and_not_before() {
    let kit = Kit::new();
    kit.store(Keep::File).set("weather", to(&["a.example"], value(VALUE))).unwrap();
    kit.store(Keep::File)
        .set("email/work", fields(&[("user", "ann"), ("password", "long enough")], &["user"]))
        .unwrap();
    let store = kit.store(Keep::Auto);
    assert_eq!(store.secret("weather").unwrap().expose(), VALUE);
    store.set("weather", to(&["b.example"], Given::default())).unwrap();
    assert_eq!((stored(&store), kit.fake.asked()), ((0, 2), 0), "reading and new hosts move nothing");
    // A new value moves it, and of an account the fields beside the new one too.
    assert_eq!(store.set("email/work", fields(&[("password", "a new one")], &[])).unwrap().place, Some(Place::Keyring));
    assert_eq!(store.relocate("weather", Place::Keyring).unwrap().place, Some(Place::Keyring));
    assert_eq!(store.relocate("weather", Place::Keyring).unwrap().place, Some(Place::Keyring));
    let file = kit.file();
    assert!(!file.contains(VALUE) && !file.contains("ann") && !file.contains("a new one"), "{file}");
    assert!(store.secret("weather").unwrap().fits("b.example"));
    let account = store.account("email", "work").unwrap();
    assert!(matches!(&account["user"], Field::Public(user) if user == "ann"));
    // And back, with nothing left behind.
    for name in ["weather", "email/work"] {
        assert_eq!(store.relocate(name, Place::File).unwrap().place, Some(Place::File));
    }
    assert!(kit.fake.values().is_empty());
    assert_eq!(kit.store(Keep::File).secret("weather").unwrap().expose(), VALUE);
    assert_eq!(store.relocate("none", Place::File).unwrap_err().kind(), Kind::NotFound);
    store.set("bare", to(&["a.example"], Given::default())).unwrap();
    assert_eq!(store.relocate("bare", Place::Keyring).unwrap_err().kind(), Kind::NotFound);
}

#[test]
fn what_cannot_be_removed_is_told_and_removed_later() {
    let kit = Kit::new();
    let store = kit.store(Keep::Auto);
    store.set("weather", value(VALUE)).unwrap();
    kit.fake.refuse(Refusal::Locked);
    // A new value goes to the file, the deleted name is gone for everybody, and the old value is not forgotten about.
    let changed = store.set("weather", value("a newer value")).unwrap();
    assert_eq!((changed.place, changed.left), (Some(Place::File), Some(Refusal::Locked)));
    assert_eq!(store.secret("weather").unwrap().expose(), "a newer value");
    assert_eq!(store.delete("weather").unwrap().left, Some(Refusal::Locked));
    assert!(store.list().unwrap().is_empty() && kit.fake.values() == [VALUE]);
    assert_eq!(store.set("a", to(&[], Given::default())).unwrap().left, Some(Refusal::Locked));
    kit.fake.refuse(None);
    assert_eq!(store.set("a", to(&[], Given::default())).unwrap().left, None);
    assert!(kit.fake.values().is_empty() && !kit.file().contains("left"));
}

#[test]
fn an_account_is_stored_whole_or_not_at_all() {
    let kit = Kit::new();
    let store = kit.store(Keep::Auto);
    store.set("email/work", fields(&[("user", "ann"), ("password", "long enough")], &[])).unwrap();
    kit.fake.refuse(Refusal::Locked);
    let before = kit.file();
    assert_eq!(store.set("email/work", fields(&[("password", "x")], &[])).unwrap_err().kind(), Kind::Disabled);
    assert_eq!(store.set("email/work", value("x")).unwrap_err().kind(), Kind::InvalidArguments);
    assert_eq!(kit.file(), before);
    // All of it anew needs nothing of the old.
    let all = fields(&[("user", "bob"), ("password", "another")], &[]);
    assert_eq!(store.set("email/work", all).unwrap().place, Some(Place::File));
    kit.fake.refuse(None);
    store.relocate("email/work", Place::Keyring).unwrap();
    for held in kit.fake.state().held.values_mut() {
        *held = "no account".to_owned();
    }
    let e = store.account("email", "work").unwrap_err();
    assert!(e.kind() == Kind::UpstreamUnavailable && !format!("{e:?}").contains("no account"), "{e:?}");
}

#[test]
fn the_environment_stands_in_for_a_keyring_that_does_not_answer() {
    let kit = Kit::new();
    let read = |name: &str| match name {
        "LAPIDARY_CREDENTIAL_WEATHER" => Some("from-the-environment".to_owned()),
        "LAPIDARY_CREDENTIAL_EMAIL_WORK" => Some("no-account".to_owned()),
        _ => None,
    };
    let store = Store::new(kit.source().environment(read));
    store.set("weather", to(&["a.example"], value(VALUE))).unwrap();
    store.set("email/work", fields(&[("password", "long enough")], &[])).unwrap();
    assert_eq!(store.secret("weather").unwrap().expose(), VALUE);
    let other = Store::new(kit.source().environment(read));
    for refusal in [Refusal::Absent("of a test"), Refusal::Locked, Refusal::Failed("x".into()), Refusal::Slow] {
        kit.fake.refuse(refusal);
        let secret = other.secret("weather").unwrap();
        assert!(secret.expose() == "from-the-environment" && secret.fits("a.example"));
        assert!(other.account("email", "work").is_err(), "an account is not one value");
    }
    // Either may have been given, so neither stays in a text.
    assert_eq!(cleaned(&store, &format!("{VALUE} from-the-environment")), "*** ***");
    kit.fake.refuse(None);
    let off = Store::new(kit.source().environment(read).keep(Keep::File));
    assert_eq!(off.secret("weather").unwrap().expose(), "from-the-environment");
    assert!(off.secret("other").is_err() && off.account("email", "work").unwrap_err().message().contains("file only"));
}

#[test]
fn what_was_read_from_the_keyring_is_taken_out_of_texts_also_when_it_is_locked() {
    let kit = Kit::new();
    let store = kit.store(Keep::Auto);
    store.set("weather", value(VALUE)).unwrap();
    store.set("email/work", fields(&[("label", "Work post"), ("password", "long enough")], &["label"])).unwrap();
    let text = format!("{VALUE}, long enough, Work post, {}", VALUE.replace(' ', "%20"));
    // Before anybody was given one: a server may know it from an earlier run of the host.
    assert_eq!(cleaned(&store, &text), "***, ***, Work post, ***");
    let asked = kit.fake.asked();
    assert_eq!(cleaned(&store, &text), "***, ***, Work post, ***");
    assert_eq!(kit.fake.asked(), asked, "what is known is not asked for");
    for refusal in [Refusal::Locked, Refusal::Slow, Refusal::Absent("of a test")] {
        kit.fake.refuse(refusal.clone());
        assert_eq!(cleaned(&store, &text), "***, ***, Work post, ***");
        assert_eq!(store.redactor([]).map(|r| r.text(&text).into_owned()).unwrap(), "***, ***, Work post, ***");
        let other = kit.store(Keep::Auto);
        assert!(other.redactor([]).is_err(), "a recording that cannot be cleaned is none");
        let asked = kit.fake.asked();
        let journal = |store: &Store| store.known_redactor([]).unwrap().text(&text).into_owned();
        assert_eq!((journal(&store), journal(&other)), ("***, ***, Work post, ***".to_owned(), text.clone()));
        assert_eq!(kit.fake.asked(), asked, "a journal asks no keyring");
        assert_eq!(cleaned(&other, &text), text);
    }
    // One that is not known does not hide those that are.
    kit.fake.refuse(None);
    kit.store(Keep::Auto).set("other", value("another value")).unwrap();
    kit.fake.refuse(Refusal::Locked);
    assert_eq!(cleaned(&store, &text), "***, ***, Work post, ***");
    kit.fake.refuse(None);
    assert_eq!(cleaned(&store, "another value"), "***");
    // Of another plugin's credentials nothing is said or asked.
    let used = Used::default();
    let fresh = kit.store(Keep::Auto);
    let asked = kit.fake.asked();
    fresh.add_permitted(&granted(&["nothing"]), &used);
    assert!(used.redactor().is_none() && kit.fake.asked() == asked);
    // What is not stored any more is a text as any other.
    store.delete("weather").unwrap();
    assert_eq!(cleaned(&store, VALUE), VALUE);
}

#[test]
fn a_value_is_given_from_memory_for_a_moment_and_known_for_ever() {
    let fake = Fake::default();
    let item = Item { name: "weather".to_owned(), id: "1".to_owned() };
    fake.put(&item, VALUE).unwrap();
    let items = [item.clone()];
    let mut known = Known::default();
    let start = Instant::now();
    let get = |known: &mut Known, age, after| {
        known.get(&fake, &items, age, start + after).map(|v| v[0].as_ref().map(|v| v.to_string()))
    };
    let there = Ok(Some(VALUE.to_owned()));
    assert_eq!(get(&mut known, Age::Recent, Duration::ZERO), there);
    assert_eq!(get(&mut known, Age::Recent, RECENT - Duration::from_millis(1)), there);
    assert_eq!(get(&mut known, Age::Any, RECENT * 100), there);
    assert_eq!(fake.asked(), 2);
    // Locked or removed there, it is given to nobody a moment later, and still taken out of texts.
    fake.refuse(Refusal::Locked);
    assert_eq!(get(&mut known, Age::Recent, RECENT), Err(Refusal::Locked));
    assert_eq!(get(&mut known, Age::Any, RECENT), there);
    fake.refuse(None);
    fake.state().held.clear();
    assert_eq!(get(&mut known, Age::Recent, RECENT), Ok(None));
    assert_eq!(get(&mut known, Age::Any, RECENT), there);
    assert!(known.remembered(&item).is_some());
    known.keep(["1"].into_iter());
    assert!(known.remembered(&item).is_some());
    known.keep(["2"].into_iter());
    assert!(known.remembered(&item).is_none());
    // What is not there is asked for once in a moment; a keyring that is slow is left alone for one.
    let asked = fake.asked();
    for age in [Age::Any, Age::Recent, Age::Any] {
        assert_eq!(get(&mut known, age, RECENT), Ok(None));
    }
    assert_eq!(fake.asked(), asked + 1);
    fake.refuse(Refusal::Slow);
    for seconds in [120, 121, 149] {
        assert_eq!(get(&mut known, Age::Recent, Duration::from_secs(seconds)), Err(Refusal::Slow));
    }
    assert_eq!(fake.asked(), asked + 2);
    fake.refuse(None);
    assert_eq!(get(&mut known, Age::Recent, Duration::from_secs(150)), Ok(None));
}

#[test]
fn the_doctor_learns_what_the_keyring_lost_and_why_it_cannot_be_asked() {
    let kit = Kit::new();
    let store = kit.store(Keep::Auto);
    store.set("weather", value(VALUE)).unwrap();
    kit.store(Keep::File).set("other", value(VALUE)).unwrap();
    assert_eq!(stored(&store), (1, 1));
    kit.fake.refuse(Refusal::Slow);
    assert_eq!(store.check().unwrap().refused, Some(Refusal::Slow));
    kit.fake.refuse(None);
    kit.fake.state().held.clear();
    assert_eq!(store.check().unwrap().gone, ["weather"]);
    let e = store.secret("weather").unwrap_err();
    assert!(e.kind() == Kind::NotFound && e.message().contains("no longer"), "{e}");
}

#[test]
fn a_change_that_cannot_be_written_leaves_nothing_in_the_keyring() {
    let kit = Kit::new();
    let store = kit.store(Keep::Auto);
    store.set("weather", value(VALUE)).unwrap();
    // A folder cannot be replaced by a file.
    let path = kit.dir.path().join("credentials.json");
    let text = fs::read(&path).unwrap();
    kit.fake.state().spoils = Some(path.clone());
    let refused = store.set("weather", value("a newer value"));
    assert!(refused.is_err() && kit.fake.values() == [VALUE], "{:?}", kit.fake.values());
    fs::remove_dir(&path).unwrap();
    file::write_atomic_private(&path, &text).unwrap();
    assert_eq!(store.secret("weather").unwrap().expose(), VALUE);
}

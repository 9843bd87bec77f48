//! The Secret Service of a desktop session (GNOME Keyring, KWallet, KeePassXC) over the session's message bus.
//! One connection a question, on a runtime of its own that ends with it: nothing of it stays in a host.

use super::{Item, Refusal, Value};
use crate::base::paths;
use futures_util::StreamExt;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::HashMap;
use std::future::Future;
use std::time::Duration;
use zbus::connection::{Builder, Connection};
use zbus::message::Type as Message;
use zbus::names::ErrorName;
use zbus::{DynamicType, MatchRule, MessageStream, ObjectPath, OwnedObjectPath, OwnedVariant, Type, Variant, fdo};
use zeroize::Zeroizing;

/// How long a change may take: the first question of a session may start the keyring.
pub(super) const WRITING: Duration = Duration::from_secs(10);

const BUS: &str = "DBUS_SESSION_BUS_ADDRESS";
const NAME: &str = "org.freedesktop.secrets";
const SERVICE: &str = "org.freedesktop.Secret.Service";
const COLLECTION: &str = "org.freedesktop.Secret.Collection";
const ITEM: &str = "org.freedesktop.Secret.Item";
const PROMPT: &str = "org.freedesktop.Secret.Prompt";
const ROOT: &str = "/org/freedesktop/secrets";
/// What stands for no object.
const NOTHING: &str = "/";

/// As it travels: the session, parameters of its cipher, the value, its media type.
type Wire = (OwnedObjectPath, Vec<u8>, Vec<u8>, String);

pub(super) fn get(items: &[Item], limit: Duration) -> Result<Vec<Option<Value>>, Refusal> {
    run(limit, async |service| service.values(items).await)
}

pub(super) fn put(item: &Item, value: &str, limit: Duration) -> Result<(), Refusal> {
    run(limit, async |service| service.create(item, value).await)
}

pub(super) fn remove(item: &Item, limit: Duration) -> Result<(), Refusal> {
    run(limit, async |service| service.delete(item).await)
}

pub(super) fn unlock(limit: Duration) -> Result<(), Refusal> {
    run(limit, async |service| service.unlock().await)
}

/// Asks the service of this session. Without an address of the bus nothing is looked for: the library's own ways to find one
/// would start programs.
fn run<T>(limit: Duration, ask: impl AsyncFnOnce(&Service) -> Result<T, Refusal>) -> Result<T, Refusal> {
    let address = paths::environment(BUS).ok_or(Refusal::Absent("there is no session bus"))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|_| Refusal::Failed("no runtime can be started".to_owned()))?;
    let whole = async {
        let service = Service::at(&address).await?;
        let done = ask(&service).await;
        service.close().await;
        done
    };
    runtime.block_on(in_time(limit, whole))
}

async fn in_time<T>(limit: Duration, work: impl Future<Output = Result<T, Refusal>>) -> Result<T, Refusal> {
    tokio::time::timeout(limit, work).await.unwrap_or(Err(Refusal::Slow))
}

struct Service {
    bus: Connection,
    session: OwnedObjectPath,
}

impl Service {
    /// Values travel as they are: the bus is this user's own, and whoever may listen on it may ask for them as well.
    async fn at(address: &str) -> Result<Service, Refusal> {
        let bus = Builder::address(address).build().await.map_err(|e| match e {
            zbus::Error::Address(_) => Refusal::Absent("the address of the session bus is not one"),
            _ => Refusal::Absent("the session bus does not let us in"),
        })?;
        let opened: Result<(OwnedVariant, OwnedObjectPath), _> =
            call(&bus, ROOT, SERVICE, "OpenSession", &("plain", Variant::from(""))).await;
        Ok(Service { session: opened?.1, bus })
    }

    async fn close(self) {
        let _: Result<(), _> = self.call(self.session.as_str(), "org.freedesktop.Secret.Session", "Close", &()).await;
    }

    async fn call<B, R>(&self, path: &str, interface: &str, method: &str, body: &B) -> Result<R, Refusal>
    where
        B: Serialize + DynamicType,
        R: DeserializeOwned + Type,
    {
        call(&self.bus, path, interface, method, body).await
    }

    /// Where an item is: those that can be read, and those that are locked.
    async fn find(&self, item: &Item) -> Result<(Vec<OwnedObjectPath>, Vec<OwnedObjectPath>), Refusal> {
        let marks = HashMap::from([("application", "lapidary"), ("id", item.id.as_str())]);
        self.call(ROOT, SERVICE, "SearchItems", &(marks,)).await
    }

    async fn values(&self, items: &[Item]) -> Result<Vec<Option<Value>>, Refusal> {
        let mut values = Vec::with_capacity(items.len());
        for item in items {
            let (open, locked) = self.find(item).await?;
            let Some(path) = open.first() else {
                if !locked.is_empty() {
                    return Err(Refusal::Locked);
                }
                values.push(None);
                continue;
            };
            let session = ObjectPath::from(&self.session);
            let (secret,): (Wire,) = (self.call(path.as_str(), ITEM, "GetSecret", &(session,)).await?,);
            let bytes = Zeroizing::new(secret.2);
            let text = std::str::from_utf8(&bytes);
            let text = text.map_err(|_| Refusal::Failed("what it holds is not text".to_owned()))?;
            values.push(Some(Zeroizing::new(text.to_owned())));
        }
        Ok(values)
    }

    /// Where new items go.
    async fn collection(&self) -> Result<OwnedObjectPath, Refusal> {
        let path: OwnedObjectPath = self.call(ROOT, SERVICE, "ReadAlias", &("default",)).await?;
        if path.as_str() == NOTHING { Err(Refusal::Absent("nobody has made one yet")) } else { Ok(path) }
    }

    async fn create(&self, item: &Item, value: &str) -> Result<(), Refusal> {
        let collection = self.collection().await?;
        let locked: OwnedVariant =
            self.call(collection.as_str(), "org.freedesktop.DBus.Properties", "Get", &(COLLECTION, "Locked")).await?;
        if bool::try_from(&*locked).unwrap_or(false) {
            return Err(Refusal::Locked);
        }
        let marks =
            HashMap::from([("application", "lapidary"), ("credential", item.name.as_str()), ("id", item.id.as_str())]);
        let properties = HashMap::from([
            ("org.freedesktop.Secret.Item.Label", Variant::from(format!("Lapidary: {}", item.name))),
            ("org.freedesktop.Secret.Item.Attributes", Variant::from(marks)),
        ]);
        let secret = (ObjectPath::from(&self.session), &[][..] as &[u8], value.as_bytes(), "text/plain; charset=utf8");
        let (_, prompt): (OwnedObjectPath, OwnedObjectPath) =
            self.call(collection.as_str(), COLLECTION, "CreateItem", &(properties, secret, false)).await?;
        self.refuse(prompt).await
    }

    async fn delete(&self, item: &Item) -> Result<(), Refusal> {
        let (open, locked) = self.find(item).await?;
        for path in open {
            let prompt: OwnedObjectPath = self.call(path.as_str(), ITEM, "Delete", &()).await?;
            self.refuse(prompt).await?;
        }
        if locked.is_empty() { Ok(()) } else { Err(Refusal::Locked) }
    }

    /// Where the service wants to ask a person first, nobody is asked.
    async fn refuse(&self, prompt: OwnedObjectPath) -> Result<(), Refusal> {
        if prompt.as_str() == NOTHING {
            return Ok(());
        }
        let _: Result<(), _> = self.call(prompt.as_str(), PROMPT, "Dismiss", &()).await;
        Err(Refusal::Locked)
    }

    async fn unlock(&self) -> Result<(), Refusal> {
        let collection = self.collection().await?;
        let (_, prompt): (Vec<OwnedObjectPath>, OwnedObjectPath) =
            self.call(ROOT, SERVICE, "Unlock", &(vec![ObjectPath::from(&collection)],)).await?;
        if prompt.as_str() == NOTHING {
            return Ok(());
        }
        // Listening before asking: the answer may come at once.
        let rule = MatchRule::builder()
            .msg_type(Message::Signal)
            .interface(PROMPT)
            .member("Completed")
            .path(prompt.as_str())
            .build()
            .map_err(refusal)?;
        let mut answers = MessageStream::for_match_rule(rule, &self.bus, None).await.map_err(refusal)?;
        let () = self.call(prompt.as_str(), PROMPT, "Prompt", &("",)).await?;
        let answer = answers.next().await.ok_or(Refusal::Absent("it went away"))?.map_err(refusal)?;
        let (dismissed, _): (bool, OwnedVariant) = answer.body().deserialize().map_err(refusal)?;
        if dismissed { Err(Refusal::Locked) } else { Ok(()) }
    }
}

async fn call<B, R>(bus: &Connection, path: &str, interface: &str, method: &str, body: &B) -> Result<R, Refusal>
where
    B: Serialize + DynamicType,
    R: DeserializeOwned + Type,
{
    let answer = bus.call_method(Some(NAME), path, Some(interface), method, body).await.map_err(refusal)?;
    answer.body().deserialize().map_err(refusal)
}

/// Only names of errors are told: what goes with them comes from another program.
fn refusal(e: zbus::Error) -> Refusal {
    const GONE: Refusal = Refusal::Absent("no program of this session keeps one");
    match e {
        zbus::Error::MethodError(name, ..) if is(&name, "org.freedesktop.Secret.Error.IsLocked") => Refusal::Locked,
        zbus::Error::MethodError(name, ..) if is(&name, "org.freedesktop.DBus.Error.Spawn") => GONE,
        zbus::Error::MethodError(name, ..) => Refusal::Failed(name.to_string()),
        zbus::Error::FDO(e) => match *e {
            fdo::Error::ServiceUnknown(_) | fdo::Error::NameHasNoOwner(_) | fdo::Error::Disconnected(_) => GONE,
            fdo::Error::NoReply(_) | fdo::Error::Timeout(_) | fdo::Error::TimedOut(_) => Refusal::Slow,
            fdo::Error::LimitsExceeded(_) => Refusal::TooLarge,
            other => Refusal::Failed(zbus::DBusError::name(&other).to_string()),
        },
        zbus::Error::InputOutput(_) => Refusal::Absent("the session bus went away"),
        _ => Refusal::Failed("it does not speak as a keyring does".to_owned()),
    }
}

fn is(name: &ErrorName<'_>, wanted: &str) -> bool {
    name.as_str().starts_with(wanted)
}

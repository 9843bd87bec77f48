//! The models of a host: those of `[[models]]`, with keys from the store of credentials. It sends nothing itself.

use super::Host;
use crate::base::error::{Error, Result};
use crate::config::Config;
use crate::model::local::{self, Offer};
use crate::model::{Endpoint, Entry, Key, Keys, Model, Models, settings};
use crate::service::{Services, fetch};
use std::sync::{Arc, Weak};

/// The models that the settings list, and what is wrong with the others.
pub(super) fn open(config: &Config, services: &Arc<Services>) -> (Models, Vec<Error>) {
    let (entries, wrong) = settings::read(config);
    (Models::new(entries.into_iter().map(|entry| model(entry, services)).collect()), wrong)
}

fn model(entry: Entry, services: &Arc<Services>) -> Arc<dyn Model> {
    Arc::new(Endpoint::new(entry, services.net.clone(), keys(Arc::downgrade(services))))
}

/// Keys are asked for with every request: what a person changed counts at once.
fn keys(services: Weak<Services>) -> Keys {
    Arc::new(move |name| {
        let services = services.upgrade().ok_or_else(|| Error::internal("the host has ended"))?;
        let (header, rules) = fetch::bearer(services.credentials.secret(name)?);
        Ok(Key { header, rules: Box::new(rules) })
    })
}

impl Host {
    /// The chats: what is said in them, what waits there, what happens. No turn runs in this process before
    /// [`Chats::open`](crate::chat::Chats::open).
    #[must_use]
    pub fn chats(&self) -> &Arc<crate::chat::Chats> {
        &self.0.chats
    }

    /// The models that answer in chats. Without one everything but the answer works.
    #[must_use]
    pub fn models(&self) -> &Arc<Models> {
        &self.0.models
    }

    /// Servers of models that run on this machine, found on their usual ports. They are offered; none is used before it is
    /// accepted.
    pub async fn model_offers(&self) -> Vec<Offer> {
        local::find(&self.0.services.net).await
    }

    /// Writes a model of an offer into `user/lapidary.toml` and makes it live at once, behind those there are.
    ///
    /// # Errors
    /// As for [`local::accept`].
    pub fn accept_model(&self, offer: &Offer, name: &str) -> Result<Entry> {
        let entry = local::accept(&self.paths().lapidary_toml(), offer, name)?;
        self.0.models.add(model(entry.clone(), &self.0.services));
        Ok(entry)
    }
}

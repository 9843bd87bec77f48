//! Servers of models that run on this machine already: asked on their usual ports, offered, never taken. What was accepted is
//! written into user/lapidary.toml, whose comments and form stay.

use super::settings::{Entry, read};
use crate::base::error::{Error, Kind, Result};
use crate::base::file;
use crate::net::{Client, Request, Target};
use futures_util::future::join_all;
use serde::Serialize;
use serde_json::Value;
use std::path::Path;
use std::time::Duration;
use toml_edit::{ArrayOfTables, DocumentMut, Item, Table, value};

/// How long each server may take to say what it has.
const PATIENCE: Duration = Duration::from_millis(800);
/// Most models of one server that are told.
const MOST_MODELS: usize = 200;
/// Most bytes of the settings.
const MOST_SETTINGS: u64 = 1 << 20;

/// The usual ports, and what serves there.
pub const USUAL: [(u16, &str); 8] = [
    (8080, "llama.cpp, llamafile or LocalAI"),
    (8081, "llama.cpp"),
    (11434, "Ollama"),
    (1234, "LM Studio"),
    (8000, "vLLM"),
    (5000, "text-generation-webui"),
    (5001, "KoboldCpp"),
    (1337, "Jan"),
];

/// A server of models that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Offer {
    /// Its address, as `base_url` takes it.
    pub base_url: String,
    /// What usually serves there.
    pub kind: String,
    /// The models it has, by its own names.
    pub models: Vec<String>,
}

/// Asks the usual ports of this machine, all at once, without any key. Takes a second at most.
pub async fn find(client: &Client) -> Vec<Offer> {
    find_on(client, &USUAL).await
}

/// As [`find`], on these ports.
pub async fn find_on(client: &Client, ports: &[(u16, &str)]) -> Vec<Offer> {
    let asked = ports.iter().map(|(port, kind)| ask(client, *port, kind));
    join_all(asked).await.into_iter().flatten().collect()
}

async fn ask(client: &Client, port: u16, kind: &str) -> Option<Offer> {
    let base_url = format!("http://127.0.0.1:{port}/v1");
    let mut request = Request::new("GET", format!("{base_url}/models"));
    request.timeout = PATIENCE;
    request.allow_redirects = Some(false);
    request.max_bytes = 1 << 20;
    let rules = Loopback;
    let answer = client.send(request, &rules).await.ok().filter(|answer| answer.status == 200)?;
    let document: Value = serde_json::from_slice(&answer.body).ok()?;
    let list = document.get("data").or_else(|| document.get("models"))?.as_array()?;
    let models: Vec<String> = list
        .iter()
        .filter_map(|model| ["id", "name", "model"].into_iter().find_map(|key| model.get(key)?.as_str()))
        .filter(|name| !name.is_empty() && name.len() <= 200 && !name.chars().any(char::is_control))
        .take(MOST_MODELS)
        .map(str::to_owned)
        .collect();
    (!models.is_empty()).then(|| Offer { base_url, kind: kind.to_owned(), models })
}

struct Loopback;

impl crate::net::Rules for Loopback {
    fn permit(&self, target: Target) -> Result<()> {
        match target.host == "127.0.0.1" {
            true => Ok(()),
            false => Err(Error::denied("servers of models are looked for on this machine only")),
        }
    }
}

/// Writes a model of an offer into the settings file, behind what stands there, and gives its entry. It may serve private
/// chats, for it runs here. The name is `local`, or `local-2` and so on where that is taken.
///
/// # Errors
/// `not_found` for a model that the offer does not have, `invalid_arguments` where the file does not parse, what writing says.
pub fn accept(settings: &Path, offer: &Offer, model: &str) -> Result<Entry> {
    if !offer.models.iter().any(|known| known == model) {
        return Err(Error::not_found(format!("the server at {} has no such model", offer.base_url)));
    }
    let text = match file::read_text_capped(settings, MOST_SETTINGS) {
        Ok(text) => text,
        Err(e) if e.kind() == Kind::NotFound => String::new(),
        Err(e) => return Err(e),
    };
    let (text, name) = with_model(&text, &offer.base_url, model)?;
    // As a restart will read it, before anything is written.
    let config = text.parse().map_err(|_| Error::internal("the settings that were written do not parse"))?;
    let (entries, mut wrong) = read(&config);
    let entry = entries.into_iter().find(|entry| entry.profile.name == name);
    let entry =
        entry.ok_or_else(|| wrong.pop().unwrap_or_else(|| Error::internal("the new model is not read back")))?;
    file::write_atomic(settings, text.as_bytes())?;
    Ok(entry)
}

/// The settings with one model more, and its name.
fn with_model(text: &str, base_url: &str, model: &str) -> Result<(String, String)> {
    let hint = "mend the file first; nothing was changed";
    let mut document: DocumentMut =
        text.parse().map_err(|_| Error::invalid("user/lapidary.toml does not parse").hint(hint))?;
    let list = document.entry("models").or_insert(Item::ArrayOfTables(ArrayOfTables::new()));
    let list = list
        .as_array_of_tables_mut()
        .ok_or_else(|| Error::invalid("user/lapidary.toml: `models` is not written as [[models]]").hint(hint))?;
    let is_taken = |name: &str| list.iter().any(|t| t.get("name").and_then(Item::as_str) == Some(name));
    let names = std::iter::once("local".to_owned()).chain((2..).map(|n| format!("local-{n}")));
    let name = names.into_iter().find(|name| !is_taken(name)).unwrap_or_default();
    let mut table = Table::new();
    table.insert("name", value(name.as_str()));
    table.insert("base_url", value(base_url));
    table.insert("model", value(model));
    table.insert("local", value(true));
    table.decor_mut().set_prefix("\n");
    list.push(table);
    Ok((document.to_string(), name))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_accepted_offer_is_written_behind_what_stands_there_and_changes_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lapidary.toml");
        let offer = Offer {
            base_url: "http://127.0.0.1:1/v1".into(),
            kind: "x".into(),
            models: vec!["m\"1".into(), "m2".into()],
        };
        let entry = accept(&path, &offer, "m\"1").unwrap();
        assert_eq!((entry.profile.name.as_str(), entry.profile.model.as_str()), ("local", "m\"1"));
        assert!(entry.profile.local);
        let before = "# mine\n[server]\naddr   =  \"127.0.0.1:1\" # here\n\n[[models]]\n# first\nname = \"local\"\nbase_url = \"http://a\"\nmodel = \"b\"\n# end\n";
        std::fs::write(&path, before).unwrap();
        assert_eq!(accept(&path, &offer, "m2").unwrap().profile.name, "local-2");
        let after = std::fs::read_to_string(&path).unwrap();
        for line in before.lines() {
            assert!(after.contains(line), "{line} is lost in {after}");
        }
        assert_eq!(accept(&path, &offer, "m2").unwrap().profile.name, "local-3");
        assert_eq!(accept(&path, &offer, "m3").unwrap_err().code(), "not_found");
        for bad in ["[server\n", "models = 1\n", "[models]\na = 1\n"] {
            std::fs::write(&path, bad).unwrap();
            assert_eq!(accept(&path, &offer, "m2").unwrap_err().code(), "invalid_arguments", "{bad}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), bad);
        }
    }
}

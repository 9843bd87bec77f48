//! `attachments::`: files for the person, served by a route of the plugin. Which addresses are taken is
//! `service::attachments`'.

use crate::base::error::{Error, Result};
use crate::host::argument::{Options, unfit};
use crate::script::ctx::Ctx;
use crate::script::module::HostModule;
use crate::service::attachments::{self, Item, MAX_ITEMS};
use rhai::{Array, Dynamic, Map};

/// The module.
pub fn module() -> HostModule {
    HostModule::new(
        "attachments",
        "Files that the person may play or save. A tool serves them from a route of its plugin and appends one marker line to its text; the line becomes a row of files beside the text, and the model reads the text without it: say in words what there is. Only a line that this call has made counts; one that was written by hand, or came from the web, is plain text.",
        || rhai::exported_module!(api),
    )
}

fn marker(ctx: &Ctx, title: &str, items: &Array) -> Result<String> {
    // What is beyond the last that is taken is not even looked at.
    let items = items.iter().take(MAX_ITEMS).map(item).collect::<Result<Vec<_>>>()?;
    match attachments::row(&ctx.plugin.name, title, &items)? {
        Some(files) => ctx.mint.files(files),
        None => Ok(String::new()),
    }
}

fn item(value: &Dynamic) -> Result<Item> {
    let map = value.read_lock::<Map>().ok_or_else(|| unfit("an item", "a map with `url` and `name`", value))?.clone();
    let options = Options::read(map, &["url", "name"])?;
    let url = options.text("url")?.ok_or_else(|| Error::invalid("an item needs a `url`"))?;
    Ok(Item { url: url.into(), name: options.text("name")?.unwrap_or_default().into() })
}

#[rhai::plugin::export_module]
#[allow(clippy::unwrap_used)] // in the macro's own code, which has just checked the type
mod api {
    use crate::script::ctx::{self, OrRaise, Res};
    use rhai::Array;
    #[allow(clippy::wildcard_imports)] // what the macro's own code names
    use rhai::plugin::*;

    /// The marker line for a row of files: append it to the text of the result, on a line of its own. Each item is a map with
    /// `url`, a route of this plugin (`/api/plugin/<name>/..` of letters, digits, `.`, `_`, `-` and `/`), and `name`, what the
    /// file is called when it is saved; without a name it is the last part of the address. At most 12 items are taken, and
    /// without any the line is empty. Audio (mp3, wav, ogg, oga, m4a, flac) gets a player.
    ///
    /// Throws `invalid_arguments` for any other address, also for a route of another plugin; `quota` after 64 markers.
    ///
    /// ```rhai
    /// let code = "";
    /// try { attachments::marker("Song", [#{url: "https://example.org/song.mp3"}]); } catch (e) { code = e.code; }
    /// assert_eq(code, "invalid_arguments");
    /// assert_eq(attachments::marker("Nothing", []), "");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn marker(call: NativeCallContext, title: &str, items: Array) -> Res<String> {
        let ctx = ctx::live(&call)?;
        super::marker(&ctx, title, &items).or_raise(&call)
    }
}

//! `routes::`: what a route of the plugin answers. What an answer may be is `service::reply`'s; sending it is the door's.

use crate::base::error::{Error, Result};
use crate::host::argument::{Options, unfit};
use crate::script::ctx::Ctx;
use crate::script::module::HostModule;
use crate::script::value;
use crate::service::files::{self, Folder};
use crate::service::reply::{self, Reply};
use rhai::Dynamic;

/// The module.
pub fn module() -> HostModule {
    HostModule::new(
        "routes",
        "Answers of a plugin's own routes, which `capabilities.routes` in plugin.json declares and which stand under `/api/plugin/<name>/`. A handler is a function in a file under `routes/`; its parameters are given by name: those of the path, and `query` (a map of texts), `body` (the JSON object that was sent, else an empty map), `settings`, `credentials` and `request` (`#{method, path, headers, data}`). It returns one of these answers; or a map or an array, sent as JSON; `[map, status]`; a text; or `()` for no content. What it throws becomes a failure with the status that belongs to its code.",
        || rhai::exported_module!(api),
    )
}

fn file(ctx: &Ctx, path: &str, options: &Options) -> Result<Reply> {
    let save_as = match options.value("attachment") {
        None => None,
        Some(value) if value.is_bool() => {
            value.as_bool().unwrap_or(false).then(|| path.rsplit('/').next().unwrap_or(path).to_owned())
        }
        Some(value) if value.is_string() => value.clone().into_string().ok(),
        Some(value) => return Err(unfit("attachment", "a name or true", value)),
    };
    let save_as = save_as.as_deref();
    if !options.flag("asset")?.unwrap_or(false) {
        if let Some((name, inside)) = path.strip_prefix("root:").and_then(|rest| rest.split_once('/')) {
            return Reply::file(&Folder::granted(&ctx.plugin.grants.load(), name, &ctx.plugin.name)?, inside, save_as);
        }
        return Reply::file(&Folder::data(&ctx.services.paths, &ctx.plugin.name)?, path, save_as);
    }
    if let Some(folder) = &ctx.plugin.assets {
        return Reply::file(&Folder::assets(folder), path, save_as);
    }
    let missing = || Error::not_found(format!("there is no asset `{path}` beside the script"));
    let carried = ctx.services.carried.get().ok_or_else(missing)?;
    let bytes = files::carried_asset(&**carried, &ctx.plugin.name, path)?;
    Reply::of(bytes.to_vec(), reply::media_type(path), 200)?.saved_as(save_as)
}

fn json(value: &Dynamic, status: i64) -> Result<Reply> {
    let value = value::to_json(value).map_err(|e| e.context("the answer"))?;
    Reply::of(value.to_string().into_bytes(), "application/json", status)
}

const TEXT: &str = "text/plain; charset=utf-8";
const HTML: &str = "text/html; charset=utf-8";

#[rhai::plugin::export_module]
#[allow(clippy::unwrap_used)] // in the macro's own code, which has just checked the type
mod api {
    use super::{HTML, TEXT};
    use crate::host::argument::Options;
    use crate::script::ctx::{self, OrRaise, Res};
    use rhai::Map;
    #[allow(clippy::wildcard_imports)] // what the macro's own code names
    use rhai::plugin::*;

    /// What a handler gives back.
    pub type Reply = crate::service::reply::Reply;

    #[rhai_fn(return_raw)]
    pub fn file(call: NativeCallContext, path: &str) -> Res<Reply> {
        let ctx = ctx::live(&call)?;
        super::file(&ctx, path, &Options::none()).or_raise(&call)
    }

    /// A file of the plugin's data folder, or `root:<name>/path` of a folder that the owner granted. Its kind is that of its
    /// extension. A player can jump in it, and what a browser has already is not sent again. The options are `attachment`, the
    /// name under which the person is asked to save it (`true` for its own), and `asset: true` for a file beside the script.
    ///
    /// Throws `not_found`, `permission_denied` for a path that leaves the folder, `invalid_arguments` for a folder, or for a
    /// name with a line break or one of `/ \ " < >`.
    ///
    /// ```rhai
    /// files::write_text("a1.csv", "1,2");
    /// routes::file("a1.csv", #{attachment: "list.csv"});
    /// ```
    #[rhai_fn(name = "file", return_raw)]
    pub fn file_with(call: NativeCallContext, path: &str, opts: Map) -> Res<Reply> {
        let ctx = ctx::live(&call)?;
        Options::read(opts, &["attachment", "asset"])
            .and_then(|options| super::file(&ctx, path, &options))
            .or_raise(&call)
    }

    #[rhai_fn(return_raw)]
    pub fn json(call: NativeCallContext, value: Dynamic) -> Res<Reply> {
        super::json(&value, 200).or_raise(&call)
    }

    /// A value as JSON, with a status from 200 to 599; 200 without one.
    ///
    /// Throws `invalid_arguments` for what JSON cannot hold, or another status.
    ///
    /// ```rhai
    /// routes::json(#{made: true}, 201);
    /// ```
    #[rhai_fn(name = "json", return_raw)]
    pub fn json_with(call: NativeCallContext, value: Dynamic, status: i64) -> Res<Reply> {
        super::json(&value, status).or_raise(&call)
    }

    #[rhai_fn(return_raw)]
    pub fn text(call: NativeCallContext, text: &str) -> Res<Reply> {
        Reply::of(text.as_bytes().to_vec(), TEXT, 200).or_raise(&call)
    }

    /// A plain text, with a status from 200 to 599; 200 without one.
    ///
    /// Throws `invalid_arguments` for another status.
    ///
    /// ```rhai
    /// routes::text("come back later", 503);
    /// ```
    #[rhai_fn(name = "text", return_raw)]
    pub fn text_with(call: NativeCallContext, text: &str, status: i64) -> Res<Reply> {
        Reply::of(text.as_bytes().to_vec(), TEXT, status).or_raise(&call)
    }

    #[rhai_fn(return_raw)]
    pub fn html(call: NativeCallContext, html: &str) -> Res<Reply> {
        Reply::of(html.as_bytes().to_vec(), HTML, 200).or_raise(&call)
    }

    /// A page, with a status from 200 to 599; 200 without one. No script in it runs, and it loads nothing.
    ///
    /// Throws `invalid_arguments` for another status.
    ///
    /// ```rhai
    /// routes::html("<h1>No such song</h1>", 404);
    /// ```
    #[rhai_fn(name = "html", return_raw)]
    pub fn html_with(call: NativeCallContext, html: &str, status: i64) -> Res<Reply> {
        Reply::of(html.as_bytes().to_vec(), HTML, status).or_raise(&call)
    }

    #[rhai_fn(return_raw)]
    pub fn redirect(call: NativeCallContext, path: &str) -> Res<Reply> {
        Reply::redirect(path, 303).or_raise(&call)
    }

    /// A way to another path of this host, with status 302, 303, 307 or 308; 303 without one.
    ///
    /// Throws `invalid_arguments` for anything else than a path that begins with one `/`, and for another status.
    ///
    /// ```rhai
    /// routes::redirect("/api/plugin/songs/list", 307);
    /// ```
    #[rhai_fn(name = "redirect", return_raw)]
    pub fn redirect_with(call: NativeCallContext, path: &str, status: i64) -> Res<Reply> {
        Reply::redirect(path, status).or_raise(&call)
    }
}

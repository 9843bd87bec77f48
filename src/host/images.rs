//! `images::`: pictures in and beside a text. What a source means and where pictures are kept is `service::images`'; here
//! options and entries are read.

use crate::base::error::{Error, Kind, Result, excerpt};
use crate::host::argument::{Options, unfit};
use crate::script::control::{self, Stop};
use crate::script::ctx::Ctx;
use crate::script::module::HostModule;
use crate::service::attachments;
use crate::service::fetch::{JarName, Profile, Request, Response};
use crate::service::gallery::{self, MAX_TILES, Tile};
use crate::service::images::{self, FETCH_TIMEOUT, Found, MAX_BYTES, MAX_IMAGES, Shelf, Source, Stash};
use rhai::{Array, Blob, Dynamic, ImmutableString, Map};

/// The module.
pub fn module() -> HostModule {
    HostModule::new(
        "images",
        "Pictures. A tool that returns `images::result(text, pictures)` shows them to the model and to the person; each is kept in the chat, and the text gets a line `(image img:<id>)` with its handle, by which every tool finds it again (`images::resolve`). Many pictures go to the model as one numbered contact sheet and to the person as a gallery (`images::gallery`). Names and types that come with a picture are never believed: its bytes say what it is. A picture has at most 20 MiB.",
        || rhai::exported_module!(api),
    )
}

/// Tiles that a script puts together one after the other.
#[derive(Debug, Clone, Default)]
pub struct GalleryBuilder {
    title: ImmutableString,
    entries: Array,
}

fn shelf(ctx: &Ctx) -> Shelf<'_> {
    ctx.services.shelf(ctx.chat.as_deref(), ctx.private)
}

/// Ends long work on pixels with its call, on whichever thread it is.
fn check(ctx: &Ctx) -> impl Fn() -> Result<()> + Sync + '_ {
    || if ctx.control.stopped() == Stop::No { Ok(()) } else { Err(ctx.control.error()) }
}

/// The bytes of a picture: a blob, or what `resolve` gave.
fn with_data<T>(value: &Dynamic, what: &str, work: impl FnOnce(&[u8]) -> Result<T>) -> Result<T> {
    if let Some(blob) = value.read_lock::<Blob>() {
        return work(&blob);
    }
    if let Some(map) = value.read_lock::<Map>()
        && let Some(data) = map.get("data")
        && let Some(blob) = data.read_lock::<Blob>()
    {
        return work(&blob);
    }
    Err(unfit(what, "a blob, or a map with a blob as `data`", value))
}

/// One contact sheet of blobs; what is no picture keeps its number.
fn sheet(ctx: &Ctx, blobs: &[&Dynamic], cell: u32) -> Result<Blob> {
    let guards: Vec<_> = blobs.iter().map(|value| value.read_lock::<Blob>()).collect();
    let pictures: Vec<&[u8]> = guards.iter().map(|guard| guard.as_deref().map_or(&[][..], Vec::as_slice)).collect();
    images::contact_sheet(&pictures, cell, &check(ctx))
}

fn contact_sheet(ctx: &Ctx, blobs: &Array, opts: Map) -> Result<Blob> {
    let options = Options::read(opts, &["cell"])?;
    let cell = pixels(&options, "cell", 2048, CELL)?;
    if let Some(other) = blobs.iter().find(|value| !value.is_blob()) {
        return Err(unfit("an entry", "a blob", other));
    }
    sheet(ctx, &blobs.iter().collect::<Vec<_>>(), cell)
}

/// Pixels of a cell of a contact sheet, where nothing is said.
const CELL: u32 = 400;

/// Pixels of a side, from 16 to `most`.
fn pixels(options: &Options, name: &str, most: usize, default: u32) -> Result<u32> {
    Ok(options.count(name, 16..=most)?.and_then(|given| u32::try_from(given).ok()).unwrap_or(default))
}

fn for_chat(ctx: &Ctx, picture: &Dynamic, opts: Map) -> Result<Blob> {
    let options = Options::read(opts, &["max_px", "quality"])?;
    let max_px = pixels(&options, "max_px", 8192, 1536)?;
    let quality = options.count("quality", 1..=100)?.and_then(|given| u8::try_from(given).ok()).unwrap_or(88);
    with_data(picture, "`picture`", |data| images::for_chat(data, max_px, quality, &check(ctx)))
}

/// A text with pictures, as a tool returns it.
fn result(text: ImmutableString, pictures: &Dynamic, display_only: bool) -> Result<Map> {
    let list = if let Some(list) = pictures.read_lock::<Array>() {
        list.iter().map(|picture| given(picture, display_only)).collect::<Result<Array>>()?
    } else {
        vec![given(pictures, display_only)?]
    };
    if list.len() > MAX_IMAGES {
        return Err(Error::new(
            Kind::TooLarge,
            format!("{} pictures; at most {MAX_IMAGES} stand beside one text", list.len()),
        )
        .hint("put them on one contact sheet: images::contact_sheet, or images::gallery"));
    }
    let mut map = Map::new();
    map.insert("text".into(), text.into());
    map.insert("images".into(), list.into());
    Ok(map)
}

fn given(picture: &Dynamic, display_only: bool) -> Result<Dynamic> {
    with_data(picture, "a picture", |data| {
        let media_type = images::media_type(data)?;
        control::reserve(data.len())?;
        let mut map = Map::new();
        map.insert("data".into(), Dynamic::from_blob(data.to_vec()));
        map.insert("media_type".into(), media_type.into());
        map.insert("display_only".into(), display_only.into());
        Ok(map.into())
    })
}

fn stash(ctx: &Ctx, picture: &Dynamic, opts: Map) -> Result<String> {
    let options = Options::read(opts, &["visible", "caption"])?;
    let stash = Stash {
        visible: options.flag("visible")?.unwrap_or(false),
        caption: options.text("caption")?.map(|text| attachments::one_line(&text, 1000)),
    };
    with_data(picture, "`picture`", |data| shelf(ctx).stash(data, &stash))
}

/// Finds what a source names; `send` asks the web.
fn resolve(ctx: &Ctx, source: &Dynamic, send: impl FnOnce(Request) -> Result<Response>) -> Result<Map> {
    let text = source.read_lock::<ImmutableString>().map(|text| text.clone()).unwrap_or_default();
    let found = match Source::of(&text)? {
        Source::Kept(id) => shelf(ctx).kept(id, control::reserve)?,
        Source::Library(number) => {
            return Err(Error::new(
                Kind::Disabled,
                format!("`doc:{number}` is out of reach: this host has no library"),
            )
            .hint("keep pictures in the chat with images::stash"));
        }
        Source::Web(url) => {
            let memory = usize::try_from(ctx.control.budget().memory).unwrap_or(usize::MAX);
            let max_bytes = MAX_BYTES.min(memory / 2);
            control::reserve(max_bytes)?;
            let profile = Profile::Browser(JarName { owner: ctx.plugin.name.to_string(), name: "images".into() });
            let answer = send(Request { timeout: FETCH_TIMEOUT, max_bytes, profile, ..Request::new("GET", url) })
                .map_err(|e| e.context("cannot fetch the picture"))?;
            if answer.status >= 400 {
                let kind = if answer.status == 404 { Kind::NotFound } else { Kind::UpstreamUnavailable };
                return Err(Error::new(kind, format!("cannot fetch the picture: the answer is {}", answer.status)));
            }
            let kind = answer.header("content-type").map(str::to_owned);
            images::fetched(url, kind.as_deref(), answer.body)?
        }
        file @ (Source::Granted(..) | Source::Absolute(_) | Source::Own(_)) => {
            shelf(ctx).file(&file, &ctx.plugin.name, &ctx.plugin.grants.load(), control::reserve)?
        }
    };
    Ok(described(found))
}

fn described(found: Found) -> Map {
    let mut map = Map::new();
    map.insert("size".into(), i64::try_from(found.data.len()).unwrap_or(i64::MAX).into());
    map.insert("data".into(), Dynamic::from_blob(found.data));
    map.insert("media_type".into(), found.media_type.into());
    map.insert("label".into(), found.label.into());
    map.insert("origin".into(), found.origin.into());
    map
}

/// What an entry of a gallery may hold, and a tile of a gallery by hand.
const ENTRY: [&str; 8] = ["raw", "title", "page", "full", "thumb", "show", "stash", "handle"];
const TILE: [&str; 5] = ["handle", "thumb", "full", "title", "page"];

fn known(map: &Map, keys: &[&str]) -> Result<()> {
    match map.keys().find(|key| !keys.contains(&key.as_str())) {
        None => Ok(()),
        Some(key) => {
            let shown = excerpt(key, 60);
            Err(Error::invalid(format!("an entry has no `{shown}`")).hint(format!("it may have: {}", keys.join(" "))))
        }
    }
}

fn text(map: &Map, key: &str) -> Result<Option<String>> {
    match map.get(key).filter(|value| !value.is_unit()) {
        None => Ok(None),
        Some(value) => match value.read_lock::<ImmutableString>() {
            Some(text) => Ok(Some(text.to_string())),
            None => Err(unfit(key, "text", value)),
        },
    }
}

fn tile(map: &Map) -> Result<Tile> {
    Ok(Tile {
        handle: text(map, "handle")?,
        full: text(map, "full")?,
        title: text(map, "title")?.unwrap_or_default(),
        page: text(map, "page")?,
        thumb: text(map, "thumb")?,
    })
}

/// The marker line of tiles, empty where there are none, and how many of them show a picture.
fn mint(ctx: &Ctx, title: &str, tiles: Vec<Tile>) -> Result<(String, usize)> {
    match gallery::row(&ctx.plugin.name, &ctx.services.proxy, title, tiles)? {
        Some(gallery) => {
            let seen = gallery.items.iter().filter(|tile| tile.place().is_some()).count();
            Ok((ctx.mint.gallery(gallery)?, seen))
        }
        None => Ok((String::new(), 0)),
    }
}

fn gallery_marker(ctx: &Ctx, title: &str, items: &Array) -> Result<String> {
    let tiles = items.iter().map(|item| {
        if let Some(map) = item.read_lock::<Map>() {
            known(&map, &TILE)?;
            return tile(&map);
        }
        match item.read_lock::<ImmutableString>() {
            // The older form: an address alone.
            Some(url) => Ok(Tile { thumb: Some(url.to_string()), full: Some(url.to_string()), ..Tile::default() }),
            None => Err(unfit("an item", "a map or an address", item)),
        }
    });
    Ok(mint(ctx, title, tiles.collect::<Result<_>>()?)?.0)
}

/// The marker line of a builder's tiles.
fn marker_of(ctx: &Ctx, builder: &GalleryBuilder) -> Result<String> {
    let tiles = builder.entries.iter().filter_map(|entry| entry.read_lock::<Map>().map(|map| tile(&map)));
    Ok(mint(ctx, &builder.title, tiles.collect::<Result<_>>()?)?.0)
}

/// Keeps the pictures of the entries, makes their marker, and what the model sees of them.
fn assemble(ctx: &Ctx, title: &str, mut entries: Array, view: bool) -> Result<Map> {
    if entries.len() > MAX_TILES {
        return Err(Error::new(Kind::TooLarge, format!("{} pictures; at most {MAX_TILES} are shown", entries.len()))
            .hint("show the best ones"));
    }
    let mut tiles = Vec::with_capacity(entries.len());
    for entry in &mut entries {
        let Some(mut map) = entry.write_lock::<Map>() else { return Err(unfit("an entry", "a map", entry)) };
        known(&map, &ENTRY)?;
        if let Some(wrong) =
            ["raw", "show"].iter().find(|key| map.get(**key).is_some_and(|v| !v.is_blob() && !v.is_unit()))
        {
            return Err(unfit(wrong, "a blob", &map[*wrong]));
        }
        let keeps = match map.get("stash") {
            None => true,
            Some(value) => value.as_bool().map_err(|_| unfit("stash", "true or false", value))?,
        };
        let caption = text(&map, "title")?.map(|title| attachments::one_line(&title, 1000));
        let raw = map.get("raw").and_then(|raw| raw.read_lock::<Blob>());
        let handle = raw.filter(|_| keeps).and_then(|raw| {
            // A chat that keeps no more, and bytes that are no picture, leave the tile to its `thumb`.
            shelf(ctx).stash(&raw, &Stash { visible: false, caption: caption.filter(|c| !c.is_empty()) }).ok()
        });
        control::check()?;
        map.insert("handle".into(), handle.map_or(Dynamic::UNIT, Into::into));
        tiles.push(tile(&map)?);
    }
    let (marker, seen) = mint(ctx, title, tiles)?;
    let images = if view { view_of(ctx, &entries)? } else { Array::new() };
    let note = told(images.len(), entries.len(), seen);
    let mut out = Map::new();
    out.insert("images".into(), images.into());
    out.insert("tail".into(), format!("{note}{marker}").into());
    out.insert("entries".into(), entries.into());
    Ok(out)
}

/// What the model is told about what the person sees: `seen` of `all` tiles show a picture, and so do `images` beside them.
fn told(images: usize, all: usize, seen: usize) -> String {
    let order = match (images, seen) {
        _ if all == 0 => return String::new(),
        (0, 0) => "The user sees their titles as numbered tiles, without pictures",
        (0, _) => "The user sees these pictures as numbered tiles, in this order",
        _ if all == 1 => "The user sees this picture too",
        (_, 0) => "The picture shows them with their numbers, and the user sees it too",
        _ => "The picture shows them with their numbers; the user sees them as numbered tiles",
    };
    let bare = match all - seen {
        n if n == 0 || seen == 0 || all == 1 => String::new(),
        1 => ", 1 of them without a picture".to_owned(),
        n => format!(", {n} of them without a picture"),
    };
    format!("({order}{bare}.)\n")
}

/// One picture, or one sheet of many.
fn view_of(ctx: &Ctx, entries: &Array) -> Result<Array> {
    let maps: Vec<_> = entries.iter().filter_map(|entry| entry.read_lock::<Map>()).collect();
    let nothing = Dynamic::UNIT;
    let pictures: Vec<&Dynamic> = maps
        .iter()
        .map(|map| ["show", "raw"].iter().find_map(|key| map.get(*key).filter(|v| v.is_blob())).unwrap_or(&nothing))
        .collect();
    match pictures.as_slice() {
        _ if pictures.iter().all(|picture| picture.is_unit()) => Ok(Array::new()),
        [one] => with_data(one, "raw", |data| {
            control::reserve(data.len())?;
            Ok(vec![Dynamic::from_blob(data.to_vec())])
        }),
        many => Ok(vec![Dynamic::from_blob(sheet(ctx, many, CELL)?)]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_is_told_what_the_person_sees_and_nothing_else() {
        let rows = [
            ((0, 0, 0), ""),
            ((0, 3, 3), "(The user sees these pictures as numbered tiles, in this order.)\n"),
            ((0, 3, 0), "(The user sees their titles as numbered tiles, without pictures.)\n"),
            (
                (0, 3, 2),
                "(The user sees these pictures as numbered tiles, in this order, 1 of them without a picture.)\n",
            ),
            ((1, 1, 1), "(The user sees this picture too.)\n"),
            ((1, 1, 0), "(The user sees this picture too.)\n"),
            ((1, 4, 0), "(The picture shows them with their numbers, and the user sees it too.)\n"),
            (
                (1, 4, 2),
                "(The picture shows them with their numbers; the user sees them as numbered tiles, 2 of them without a picture.)\n",
            ),
            ((1, 4, 4), "(The picture shows them with their numbers; the user sees them as numbered tiles.)\n"),
        ];
        for ((images, all, seen), expected) in rows {
            assert_eq!(told(images, all, seen), expected);
        }
    }
}

#[rhai::plugin::export_module]
#[allow(clippy::unwrap_used)] // in the macro's own code, which has just checked the type
mod api {
    use crate::host::net;
    use crate::script::ctx::{self, OrRaise, Res};
    #[allow(clippy::wildcard_imports)] // what the macro's own code names
    use rhai::plugin::*;
    use rhai::{Array, Blob, Map};

    /// A gallery that is put together tile by tile: `add(entry)`, then `finish()`, or `marker()` for the marker line alone.
    pub type GalleryBuilder = super::GalleryBuilder;

    #[rhai_fn(return_raw)]
    pub fn result(call: NativeCallContext, text: ImmutableString) -> Res<Map> {
        ctx::live(&call)?;
        super::result(text, &Array::new().into(), false).or_raise(&call)
    }

    #[rhai_fn(return_raw, name = "result")]
    pub fn result_with(call: NativeCallContext, text: ImmutableString, pictures: Dynamic) -> Res<Map> {
        ctx::live(&call)?;
        super::result(text, &pictures, false).or_raise(&call)
    }

    /// A text with pictures: what a tool returns so that they are seen. `pictures` is a list of blobs, or of what `resolve`
    /// gives; at most 24. The person sees each as it is; the model sees a copy of its pixels and nothing else of the file: upright,
    /// at most 1536 pixels a side, of an animation the first frame. With `display_only` only the person sees them.
    ///
    /// Throws `bad_image` for bytes that are no picture, `too_large` for more than 24.
    ///
    /// ```rhai
    /// let dot = base64::decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg==");
    /// let shown = images::result("A dot.", [dot]);
    /// assert_eq(shown.images[0].media_type, "image/png");
    /// assert_eq(images::result("Nothing."), #{text: "Nothing.", images: []});
    /// ```
    #[rhai_fn(return_raw, name = "result")]
    pub fn result_for(
        call: NativeCallContext,
        text: ImmutableString,
        pictures: Dynamic,
        display_only: bool,
    ) -> Res<Map> {
        ctx::live(&call)?;
        super::result(text, &pictures, display_only).or_raise(&call)
    }

    #[rhai_fn(return_raw)]
    pub fn for_chat(call: NativeCallContext, picture: Dynamic) -> Res<Blob> {
        let ctx = ctx::live(&call)?;
        super::for_chat(&ctx, &picture, Map::new()).or_raise(&call)
    }

    /// A picture of any format as a JPEG fit for a model: upright, at most `max_px` pixels a side (1536 unless given; it never
    /// grows), transparent parts white. `quality` is 1 to 100, 88 unless given. A picture that a tool returns is made fit by
    /// the host: this is for tools that do more with it.
    ///
    /// Throws `bad_image` for what cannot be decoded, `too_large` beyond 64 megapixels.
    ///
    /// ```rhai
    /// let dot = base64::decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg==");
    /// let jpeg = images::for_chat(dot, #{max_px: 512});
    /// assert_eq(jpeg[0], 255);
    /// assert_eq(jpeg[1], 216);
    /// ```
    #[rhai_fn(return_raw, name = "for_chat")]
    pub fn for_chat_with(call: NativeCallContext, picture: Dynamic, opts: Map) -> Res<Blob> {
        let ctx = ctx::live(&call)?;
        super::for_chat(&ctx, &picture, opts).or_raise(&call)
    }

    #[rhai_fn(return_raw)]
    pub fn contact_sheet(call: NativeCallContext, blobs: Array) -> Res<Blob> {
        let ctx = ctx::live(&call)?;
        super::contact_sheet(&ctx, &blobs, Map::new()).or_raise(&call)
    }

    /// Many pictures as one JPEG, in square cells with numbers from 1: the cheap way to show them to a model. `cell` is the
    /// size of a cell in pixels, 400 unless given. What cannot be decoded leaves its cell dark and keeps its number.
    ///
    /// Throws `too_large` where the sheet would be.
    ///
    /// ```rhai
    /// let dot = base64::decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg==");
    /// let sheet = images::contact_sheet([dot, dot, dot], #{cell: 100});
    /// assert_eq(sheet[0], 255);
    /// ```
    #[rhai_fn(return_raw, name = "contact_sheet")]
    pub fn contact_sheet_with(call: NativeCallContext, blobs: Array, opts: Map) -> Res<Blob> {
        let ctx = ctx::live(&call)?;
        super::contact_sheet(&ctx, &blobs, opts).or_raise(&call)
    }

    /// The picture that a source names, as a map with `data` (a blob), `media_type`, `label`, `origin` (`chat`, `web` or
    /// `file`) and `size` (bytes). A source is a handle of this chat (`img:<id>`), an address of the web (the plugin needs
    /// EXTERNAL_HTTP for its host; 15 s, 20 MiB), a file of a granted folder (`root:<name>/path`), or one in the plugin's own
    /// folder.
    ///
    /// Throws `not_found` for a handle that this chat does not have, `bad_image` for what is no picture, `permission_denied`
    /// for a file anywhere else, whether or not it exists, `invalid_arguments` for what names no picture.
    ///
    /// ```rhai
    /// let dot = base64::decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg==");
    /// files::write_blob("pictures/dot.png", dot);
    /// let found = images::resolve("pictures/dot.png");
    /// assert_eq(found.media_type, "image/png");
    /// assert_eq(found.label, "dot.png");
    /// assert_eq(found.data, dot);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn resolve(call: NativeCallContext, source: Dynamic) -> Res<Map> {
        let ctx = ctx::live(&call)?;
        net::ask_direct(&call, &ctx)?;
        let send = |request| ctx.control.wait(&ctx.services.runtime, net::sender(&ctx).send(request));
        super::resolve(&ctx, &source, send).or_raise(&call)
    }

    #[rhai_fn(return_raw)]
    pub fn stash(call: NativeCallContext, picture: Dynamic) -> Res<String> {
        let ctx = ctx::live(&call)?;
        super::stash(&ctx, &picture, Map::new()).or_raise(&call)
    }

    /// Keeps a picture in the chat and gives its handle, `img:<id>`: name it in the text, and every tool finds the picture
    /// again. What no message names is deleted one day. `caption` says in words what it shows; with `visible` a model may be
    /// shown it again by itself.
    ///
    /// Throws `bad_image` for what is no picture, `invalid_arguments` in a call without a chat, `too_large` over 20 MiB,
    /// `quota` where the chat is full.
    ///
    /// ```rhai
    /// let dot = base64::decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg==");
    /// if scopes::chat() != () {
    ///     let handle = images::stash(dot, #{caption: "a dot"});
    ///     assert_eq(images::resolve(handle).data, dot);
    /// }
    /// ```
    #[rhai_fn(return_raw, name = "stash")]
    pub fn stash_with(call: NativeCallContext, picture: Dynamic, opts: Map) -> Res<String> {
        let ctx = ctx::live(&call)?;
        super::stash(&ctx, &picture, opts).or_raise(&call)
    }

    #[rhai_fn(return_raw)]
    pub fn gallery(call: NativeCallContext, title: &str, entries: Array) -> Res<Map> {
        let ctx = ctx::live(&call)?;
        super::assemble(&ctx, title, entries, true).or_raise(&call)
    }

    /// Many pictures at once: kept, on one numbered sheet for the model, as numbered tiles for the person. Entries are maps in
    /// the order of the numbers: `raw` (a blob), `title`, `page` (where it is from), `full` (what a click enlarges), `thumb`
    /// (a tile for a picture that is not kept), `show` (what the model sees in place of `raw`), `stash` (false: do not keep it).
    /// Gives a map: `images` for `images::result`, empty where `view` is false; `tail`, to be appended to the text on a line of
    /// its own; `entries` with `handle` set in each, `()` where the picture was not kept. A tile loads nothing from another
    /// host: addresses of the internet go through this host's proxy, and others, also those of the local network, are left out.
    ///
    /// Throws `too_large` for more than 100 entries, `invalid_arguments` for an entry with an unknown key.
    ///
    /// ```rhai
    /// let dot = base64::decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg==");
    /// let g = images::gallery("Dots", [
    ///     #{raw: dot, title: "first", page: "https://example.org/1"},
    ///     #{raw: dot, title: "second"},
    /// ]);
    /// assert_eq(g.images.len(), 1);
    /// let lines = g.entries.map(|e| `${e.title} - ${e.handle}`);
    /// let shown = images::result(text::join(lines, "\n") + "\n" + g.tail, g.images);
    /// assert_eq(shown.images.len(), 1);
    /// ```
    #[rhai_fn(return_raw, name = "gallery")]
    pub fn gallery_view(call: NativeCallContext, title: &str, entries: Array, view: bool) -> Res<Map> {
        let ctx = ctx::live(&call)?;
        super::assemble(&ctx, title, entries, view).or_raise(&call)
    }

    /// The marker line of a gallery made by hand: append it to the text of the result, on a line of its own. Items are maps
    /// with `handle` (`img:<id>`) or `thumb`, and perhaps `full`, `title` and `page`; an address alone is a tile that shows
    /// it. Without items the line is empty.
    ///
    /// Throws `invalid_arguments` for a handle that is none, `too_large` for more than 100 items.
    ///
    /// ```rhai
    /// let line = images::gallery_marker("Two", [#{handle: "img:0123456789ab.png", title: "one"}, "https://example.org/2.png"]);
    /// assert(line.starts_with("<!--GALLERY:"), line);
    /// assert(line.contains("/api/proxy?u="), line);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn gallery_marker(call: NativeCallContext, title: &str, items: Array) -> Res<String> {
        let ctx = ctx::live(&call)?;
        super::gallery_marker(&ctx, title, &items).or_raise(&call)
    }

    /// An empty gallery, to be filled entry by entry.
    ///
    /// ```rhai
    /// let g = images::builder("Dots");
    /// for n in 1..=3 { g.add(#{title: `dot ${n}`, page: `https://example.org/${n}`}); }
    /// assert_eq(g.finish().entries.len(), 3);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn builder(call: NativeCallContext, title: ImmutableString) -> Res<GalleryBuilder> {
        ctx::live(&call)?;
        Ok(super::GalleryBuilder { title, entries: Array::new() })
    }

    /// Adds an entry, a map as `images::gallery` takes it.
    #[rhai_fn(global, return_raw)]
    pub fn add(call: NativeCallContext, builder: &mut GalleryBuilder, entry: Map) -> Res<()> {
        super::known(&entry, &super::ENTRY).or_raise(&call)?;
        builder.entries.push(entry.into());
        Ok(())
    }

    #[rhai_fn(global, return_raw, pure)]
    pub fn finish(call: NativeCallContext, builder: &mut GalleryBuilder) -> Res<Map> {
        finish_view(call, builder, true)
    }

    /// What `images::gallery` gives for the entries so far.
    #[rhai_fn(global, return_raw, pure, name = "finish")]
    pub fn finish_view(call: NativeCallContext, builder: &mut GalleryBuilder, view: bool) -> Res<Map> {
        let ctx = ctx::live(&call)?;
        super::assemble(&ctx, &builder.title, builder.entries.clone(), view).or_raise(&call)
    }

    /// The marker line of the entries so far, for tiles with a `handle` or a `thumb`; nothing is kept.
    ///
    /// ```rhai
    /// let g = images::builder("Two");
    /// g.add(#{handle: "img:0123456789ab.png", title: "one"});
    /// assert(g.marker().starts_with("<!--GALLERY:"), "a marker");
    /// ```
    #[rhai_fn(global, return_raw, pure)]
    pub fn marker(call: NativeCallContext, builder: &mut GalleryBuilder) -> Res<String> {
        let ctx = ctx::live(&call)?;
        super::marker_of(&ctx, builder).or_raise(&call)
    }

    /// The path on this host under which a page shows the picture at a web address: the host fetches it, and no page loads
    /// anything from another host.
    ///
    /// Throws `invalid_arguments` for anything but a whole `http` or `https` address, `permission_denied` for one of the local
    /// network, which is never proxied.
    ///
    /// ```rhai
    /// let path = images::proxied("https://example.org/cat.png");
    /// assert(path.starts_with("/api/proxy?u=https"), path);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn proxied(call: NativeCallContext, url: &str) -> Res<String> {
        let ctx = ctx::live(&call)?;
        ctx.services.proxy.sign(url).or_raise(&call)
    }
}

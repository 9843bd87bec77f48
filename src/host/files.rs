//! `files::`: the plugin's data folder, files beside the script, and user folders by grant. Reading and writing is
//! `service::files`'.

use crate::base::error::{Error, Kind, Result};
use crate::script::control;
use crate::script::ctx::{self, Ctx, OrRaise, Res};
use crate::script::module::HostModule;
use crate::service::files::{self, Entry};
use crate::service::time;
use rhai::{Array, Blob, Dynamic, Map, NativeCallContext};
use std::sync::Arc;

/// The module.
pub fn module() -> HostModule {
    HostModule::new(
        "files",
        "Files in the plugin's own data folder, files beside the script (read-only), and folders that the owner granted by name. Paths are relative with `/` between names and never leave their folder. A file has at most 20 MiB, the data folder 256 MiB and 10,000 files.",
        || rhai::exported_module!(api),
    )
}

/// A user folder as a script holds it: a name. Whether it is granted is asked at every use.
#[derive(Debug, Clone)]
pub struct Folder(Arc<str>);

/// Which folder a call means.
enum Place<'a> {
    Data,
    Granted(&'a Folder),
}

impl Place<'_> {
    fn open(&self, ctx: &Ctx) -> Result<files::Folder> {
        match self {
            Place::Data => files::Folder::data(&ctx.services.paths, &ctx.plugin.name),
            Place::Granted(root) => files::Folder::granted(&ctx.plugin.grants.load(), &root.0, &ctx.plugin.name),
        }
    }

    fn read_text(&self, call: &NativeCallContext, path: &str) -> Res<String> {
        let ctx = ctx::any(call)?;
        self.open(&ctx).and_then(|folder| with_room(&folder, path, files::Folder::read_text)).or_raise(call)
    }

    fn read_blob(&self, call: &NativeCallContext, path: &str) -> Res<Blob> {
        let ctx = ctx::live(call)?;
        self.open(&ctx).and_then(|folder| with_room(&folder, path, files::Folder::read_blob)).or_raise(call)
    }

    fn write(&self, call: &NativeCallContext, path: &str, bytes: &[u8]) -> Res<()> {
        let ctx = ctx::live(call)?;
        self.changing(&ctx).and_then(|folder| folder.write_blob(path, bytes)).or_raise(call)
    }

    fn delete(&self, call: &NativeCallContext, path: &str) -> Res<bool> {
        let ctx = ctx::live(call)?;
        self.changing(&ctx).and_then(|folder| folder.delete(path)).or_raise(call)
    }

    fn list(&self, call: &NativeCallContext, path: &str) -> Res<Array> {
        let ctx = ctx::any(call)?;
        let entries = self.open(&ctx).and_then(|folder| folder.list(path)).or_raise(call)?;
        Ok(entries.into_iter().map(|entry| Dynamic::from_map(described(entry))).collect())
    }

    fn stat(&self, call: &NativeCallContext, path: &str) -> Res<Dynamic> {
        let ctx = ctx::any(call)?;
        let entry = self.open(&ctx).and_then(|folder| folder.stat(path)).or_raise(call)?;
        Ok(entry.map_or(Dynamic::UNIT, |entry| described(entry).into()))
    }

    /// The folder, for whoever wants to change something in it: a private chat leaves nothing on disk.
    fn changing(&self, ctx: &Ctx) -> Result<files::Folder> {
        if ctx.private {
            return Err(Error::new(Kind::Disabled, "files are not written in a private chat")
                .hint("return the text instead, or ask again in a chat that is not private"));
        }
        self.open(ctx)
    }
}

/// Reads after asking the memory budget for the file's size.
fn with_room<T>(folder: &files::Folder, path: &str, read: impl FnOnce(&files::Folder, &str) -> Result<T>) -> Result<T> {
    if let Some(entry) = folder.stat(path)? {
        control::reserve(usize::try_from(entry.size).unwrap_or(usize::MAX))?;
    }
    read(folder, path)
}

fn described(entry: Entry) -> Map {
    let mut map = Map::new();
    map.insert("name".into(), entry.name.into());
    map.insert("is_folder".into(), entry.is_folder.into());
    map.insert("size".into(), i64::try_from(entry.size).unwrap_or(i64::MAX).into());
    map.insert("modified".into(), time::from_unix_ms(entry.modified_ms).map_or(Dynamic::UNIT, Into::into));
    map
}

fn asset(ctx: &Ctx, path: &str) -> Result<Blob> {
    if let Some(folder) = &ctx.plugin.assets {
        return with_room(&files::Folder::assets(folder), path, files::Folder::read_blob);
    }
    let missing = || Error::not_found(format!("there is no asset `{path}` beside the script"));
    let carried = ctx.services.carried.get().ok_or_else(missing)?;
    let bytes = files::carried_asset(&**carried, &ctx.plugin.name, path)?;
    control::reserve(bytes.len())?;
    Ok(bytes.to_vec())
}

#[rhai::plugin::export_module]
#[allow(clippy::unwrap_used)] // in the macro's own code, which has just checked the type
mod api {
    use super::Place;
    use crate::script::ctx::{self, OrRaise, Res};
    use crate::service::files;
    #[allow(clippy::wildcard_imports)] // what the macro's own code names
    use rhai::plugin::*;
    use rhai::{Array, Blob};

    /// A user folder that the owner granted. It has the functions of `files` as methods:
    /// `read_text write_text read_blob write_blob list delete stat`. A revoked grant counts from the next use on.
    pub type Folder = super::Folder;

    /// A file as text.
    ///
    /// Throws `not_found`, `invalid_arguments` for a folder or bytes that are not UTF-8, `too_large` over 20 MiB,
    /// `permission_denied` for a path that leaves the folder; so in all functions that read.
    ///
    /// ```rhai
    /// files::write_text("notes/today.md", "# Today");
    /// assert_eq(files::read_text("notes/today.md"), "# Today");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn read_text(call: NativeCallContext, path: &str) -> Res<String> {
        Place::Data.read_text(&call, path)
    }

    /// Writes a whole text file as UTF-8, making the folders above it. Nobody ever reads half of it.
    ///
    /// Throws `disabled` in a private chat, `too_large` over 20 MiB, `quota` where the data folder would be too full,
    /// `permission_denied` for a path that leaves the folder; so in all functions that write. Nothing is changed then.
    ///
    /// ```rhai
    /// files::write_text("list.txt", "tea\nmilk\n");
    /// assert_eq(files::stat("list.txt").size, 9);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn write_text(call: NativeCallContext, path: &str, text: &str) -> Res<()> {
        Place::Data.write(&call, path, text.as_bytes())
    }

    /// A file's bytes as a blob.
    ///
    /// ```rhai
    /// files::write_text("a.txt", "hi");
    /// assert_eq(files::read_blob("a.txt").len(), 2);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn read_blob(call: NativeCallContext, path: &str) -> Res<Blob> {
        Place::Data.read_blob(&call, path)
    }

    /// Writes a whole file from a blob, making the folders above it.
    ///
    /// ```rhai
    /// files::write_blob("noise.bin", random::bytes(64));
    /// assert_eq(files::stat("noise.bin").size, 64);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn write_blob(call: NativeCallContext, path: &str, blob: Blob) -> Res<()> {
        Place::Data.write(&call, path, &blob)
    }

    #[rhai_fn(return_raw)]
    pub fn list(call: NativeCallContext) -> Res<Array> {
        Place::Data.list(&call, "")
    }

    /// What is in a folder, sorted by name, each as `stat` gives it; without a path, in the data folder itself.
    ///
    /// Throws `not_found`, `too_large` for more than 10,000 entries.
    ///
    /// ```rhai
    /// files::write_text("b.txt", "");
    /// files::write_text("a/c.txt", "");
    /// assert_eq(files::list().map(|entry| entry.name), ["a", "b.txt"]);
    /// assert_eq(files::list("a")[0].name, "c.txt");
    /// ```
    #[rhai_fn(return_raw, name = "list")]
    pub fn list_at(call: NativeCallContext, path: &str) -> Res<Array> {
        Place::Data.list(&call, path)
    }

    /// Deletes a file or an empty folder; gives whether there was one.
    ///
    /// Throws `conflict` for a folder that is not empty.
    ///
    /// ```rhai
    /// files::write_text("old.txt", "");
    /// assert_eq(files::delete("old.txt"), true);
    /// assert_eq(files::delete("old.txt"), false);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn delete(call: NativeCallContext, path: &str) -> Res<bool> {
        Place::Data.delete(&call, path)
    }

    /// A file or folder as a map with `name`, `is_folder`, `size` (bytes; 0 for a folder) and `modified` (RFC 3339, UTC), or
    /// `()` where there is nothing.
    ///
    /// ```rhai
    /// assert_eq(files::stat("nothing.txt"), ());
    /// files::write_text("some.txt", "12345");
    /// assert_eq(files::stat("some.txt").size, 5);
    /// ```
    #[rhai_fn(return_raw)]
    pub fn stat(call: NativeCallContext, path: &str) -> Res<Dynamic> {
        Place::Data.stat(&call, path)
    }

    /// The bytes of a file beside the script, as a blob; hidden files are not reached. For text: `.as_string()`.
    ///
    /// Throws `not_found`, and what the functions that read throw.
    ///
    /// ```rhai
    /// let code = "";
    /// try { files::asset("no-such-card.svg"); } catch (e) { code = e.code; }
    /// assert_eq(code, "not_found");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn asset(call: NativeCallContext, path: &str) -> Res<Blob> {
        let ctx = ctx::any(&call)?;
        super::asset(&ctx, path).or_raise(&call)
    }

    /// A user folder that the owner granted to this plugin under a name, with
    /// `lapidary grant <plugin> folder:<name>=/absolute/path`.
    ///
    /// Throws `permission_denied` for a name that is not granted, whether or not there is such a folder.
    ///
    /// ```rhai
    /// let code = "";
    /// try { files::root("music"); } catch (e) { code = e.code; }
    /// assert_eq(code, "permission_denied");
    /// ```
    #[rhai_fn(return_raw)]
    pub fn root(call: NativeCallContext, name: &str) -> Res<Folder> {
        let ctx = ctx::any(&call)?;
        files::Folder::granted(&ctx.plugin.grants.load(), name, &ctx.plugin.name).or_raise(&call)?;
        Ok(super::Folder(name.into()))
    }

    /// As `files::read_text`, in a granted folder.
    #[rhai_fn(global, return_raw, pure, name = "read_text")]
    pub fn root_read_text(call: NativeCallContext, folder: &mut Folder, path: &str) -> Res<String> {
        Place::Granted(folder).read_text(&call, path)
    }

    /// As `files::write_text`, in a granted folder.
    #[rhai_fn(global, return_raw, pure, name = "write_text")]
    pub fn root_write_text(call: NativeCallContext, folder: &mut Folder, path: &str, text: &str) -> Res<()> {
        Place::Granted(folder).write(&call, path, text.as_bytes())
    }

    /// As `files::read_blob`, in a granted folder.
    #[rhai_fn(global, return_raw, pure, name = "read_blob")]
    pub fn root_read_blob(call: NativeCallContext, folder: &mut Folder, path: &str) -> Res<Blob> {
        Place::Granted(folder).read_blob(&call, path)
    }

    /// As `files::write_blob`, in a granted folder.
    #[rhai_fn(global, return_raw, pure, name = "write_blob")]
    pub fn root_write_blob(call: NativeCallContext, folder: &mut Folder, path: &str, blob: Blob) -> Res<()> {
        Place::Granted(folder).write(&call, path, &blob)
    }

    #[rhai_fn(global, return_raw, pure, name = "list")]
    pub fn root_list(call: NativeCallContext, folder: &mut Folder) -> Res<Array> {
        Place::Granted(folder).list(&call, "")
    }

    /// As `files::list`, in a granted folder.
    #[rhai_fn(global, return_raw, pure, name = "list")]
    pub fn root_list_at(call: NativeCallContext, folder: &mut Folder, path: &str) -> Res<Array> {
        Place::Granted(folder).list(&call, path)
    }

    /// As `files::delete`, in a granted folder.
    #[rhai_fn(global, return_raw, pure, name = "delete")]
    pub fn root_delete(call: NativeCallContext, folder: &mut Folder, path: &str) -> Res<bool> {
        Place::Granted(folder).delete(&call, path)
    }

    /// As `files::stat`, in a granted folder.
    #[rhai_fn(global, return_raw, pure, name = "stat")]
    pub fn root_stat(call: NativeCallContext, folder: &mut Folder, path: &str) -> Res<Dynamic> {
        Place::Granted(folder).stat(&call, path)
    }
}

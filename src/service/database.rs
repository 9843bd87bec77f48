//! `db::` of plugins: which file a name means. What happens inside a file is the store's.

pub use crate::store::plugin_db::{Cell, Databases, Db, Rows, Stop, TRANSACTION_LIMIT, Tx};

use crate::base::error::{Result, io};
use crate::base::paths::{Paths, valid_plugin_name};
use crate::store::plugin_db;

/// Opens the database `name` of `plugin`, made where there is none.
///
/// # Errors
/// `invalid_arguments` for a name that is not `[a-z0-9_]{1,32}`, `quota` for one file too many, or what the file system says.
pub fn open(databases: &Databases, paths: &Paths, plugin: &str, name: &str) -> Result<Db> {
    valid_plugin_name(plugin)?;
    plugin_db::valid_name(name)?;
    let folder = paths.plugin_state();
    std::fs::create_dir_all(&folder).map_err(|e| io("cannot make the folder of plugin state", &e))?;
    databases.open(plugin, name, &paths.db_file(plugin, name))
}

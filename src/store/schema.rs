//! The tables of the host's own database: what is added is a new migration at the end, what stands is never edited.

use rusqlite::{Connection, TransactionBehavior};

/// In order; `user_version` counts those that ran.
const MIGRATIONS: &[&str] = &[
    // 1: chats, and the pictures that belong to them. Deleting or renaming a chat takes its pictures along.
    "CREATE TABLE chats (
        name TEXT PRIMARY KEY NOT NULL,
        created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL,
        private INTEGER NOT NULL DEFAULT 0,
        settings TEXT NOT NULL DEFAULT '{}'
    ) STRICT;
    CREATE TABLE tool_images (
        id TEXT PRIMARY KEY NOT NULL,
        chat_name TEXT NOT NULL REFERENCES chats (name) ON UPDATE CASCADE ON DELETE CASCADE,
        media_type TEXT NOT NULL DEFAULT 'image/jpeg',
        created_at INTEGER NOT NULL,
        visible INTEGER NOT NULL DEFAULT 1,
        caption TEXT,
        size INTEGER NOT NULL,
        data BLOB NOT NULL
    ) STRICT;
    CREATE INDEX tool_images_of_chat ON tool_images (chat_name, created_at, size);",
];

/// The version that this program writes.
pub(super) const VERSION: u32 = MIGRATIONS.len() as u32;

/// Brings a database up to [`VERSION`], each step whole or not at all. `Err(found)` for one that a newer program made.
pub(super) fn migrate(connection: &mut Connection) -> rusqlite::Result<Result<(), u32>> {
    loop {
        // Another process may migrate at the same time: the version is read under the write lock.
        let step = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let done: u32 = step.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        let Some(sql) = MIGRATIONS.get(done as usize) else {
            return Ok(if done > VERSION { Err(done) } else { Ok(()) });
        };
        step.execute_batch(sql)?;
        step.pragma_update(None, "user_version", done + 1)?;
        step.commit()?;
    }
}

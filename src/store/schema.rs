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
    // 2: the journal of calls, oldest first. `seq` and not `id` is the key: a caller may choose the id of its call, and choose one
    // twice. What is short stands before what is long, so that a list reads no long text. A row may name a chat that has no row of
    // its own yet, so a deleted chat takes its calls along by a trigger; one that becomes private does too.
    "CREATE TABLE journal (
        seq INTEGER PRIMARY KEY NOT NULL,
        id TEXT NOT NULL,
        at INTEGER NOT NULL,
        tool TEXT NOT NULL,
        plugin TEXT NOT NULL,
        generation INTEGER NOT NULL,
        door TEXT NOT NULL,
        caller TEXT NOT NULL,
        chat TEXT,
        ok INTEGER NOT NULL,
        code TEXT,
        duration_us INTEGER NOT NULL,
        operations INTEGER NOT NULL,
        memory INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        summary TEXT NOT NULL,
        arguments TEXT NOT NULL,
        text TEXT NOT NULL,
        shown TEXT,
        more TEXT
    ) STRICT;
    CREATE INDEX journal_by_id ON journal (id);
    CREATE INDEX journal_of_chat ON journal (chat) WHERE chat IS NOT NULL;
    CREATE TABLE journal_totals (
        one INTEGER PRIMARY KEY NOT NULL CHECK (one = 1),
        bytes INTEGER NOT NULL,
        dropped INTEGER NOT NULL
    ) STRICT;
    INSERT INTO journal_totals (one, bytes, dropped) VALUES (1, 0, 0);
    CREATE TRIGGER journal_of_deleted_chat AFTER DELETE ON chats BEGIN
        UPDATE journal_totals SET bytes = bytes - (SELECT ifnull(sum(bytes), 0) FROM journal WHERE chat = OLD.name);
        DELETE FROM journal WHERE chat = OLD.name;
    END;
    CREATE TRIGGER journal_of_closed_chat AFTER UPDATE OF private ON chats WHEN NEW.private <> 0 BEGIN
        UPDATE journal_totals SET bytes = bytes - (SELECT ifnull(sum(bytes), 0) FROM journal WHERE chat = NEW.name);
        DELETE FROM journal WHERE chat = NEW.name;
    END;
    CREATE TRIGGER journal_of_renamed_chat AFTER UPDATE OF name ON chats BEGIN
        UPDATE journal SET chat = NEW.name WHERE chat = OLD.name;
    END;",
];

/// The version that this program writes.
pub(super) const VERSION: u32 = MIGRATIONS.len() as u32;

/// Brings a database up to [`VERSION`], each step whole or not at all. `Err(found)` for one that a newer program made.
pub(super) fn migrate(connection: &mut Connection) -> rusqlite::Result<Result<(), u32>> {
    migrate_to(connection, VERSION)
}

/// As [`migrate`], no further than a version.
pub(super) fn migrate_to(connection: &mut Connection, version: u32) -> rusqlite::Result<Result<(), u32>> {
    loop {
        // Another process may migrate at the same time: the version is read under the write lock.
        let step = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let done: u32 = step.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        let Some(sql) = MIGRATIONS.get(done as usize).filter(|_| done < version) else {
            return Ok(if done > VERSION { Err(done) } else { Ok(()) });
        };
        step.execute_batch(sql)?;
        step.pragma_update(None, "user_version", done + 1)?;
        step.commit()?;
    }
}

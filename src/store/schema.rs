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
    // 3: chats get a number that outlives their name and is never given again, so that what writes to a chat in the middle of a
    // rename or of a deletion hits that chat or none. `settings` is text, or bytes once it is sealed.
    "CREATE TABLE numbered_chats (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        name TEXT NOT NULL UNIQUE,
        created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL,
        private INTEGER NOT NULL DEFAULT 0,
        vaulted INTEGER NOT NULL DEFAULT 0,
        settings ANY NOT NULL DEFAULT '{}'
    ) STRICT;
    INSERT INTO numbered_chats (name, created_at, updated_at, private, settings)
        SELECT name, created_at, updated_at, private, settings FROM chats ORDER BY rowid;
    DROP TABLE chats;
    ALTER TABLE numbered_chats RENAME TO chats;
    CREATE INDEX chats_by_change ON chats (updated_at);
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
    // 4: what was said in chats. Here and below, what somebody wrote is text, or bytes once it is sealed.
    "CREATE TABLE messages (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        chat INTEGER NOT NULL REFERENCES chats (id) ON DELETE CASCADE,
        role TEXT NOT NULL CHECK (role IN ('user', 'assistant', 'tool')),
        at INTEGER NOT NULL,
        turn TEXT NOT NULL,
        body ANY NOT NULL
    ) STRICT;
    CREATE INDEX messages_of_chat ON messages (chat);",
    // 5: what waits to be said in a chat, in the order of `seq`.
    "CREATE TABLE inbox (
        ticket TEXT PRIMARY KEY NOT NULL,
        chat INTEGER NOT NULL REFERENCES chats (id) ON DELETE CASCADE,
        seq INTEGER NOT NULL,
        lane TEXT NOT NULL CHECK (lane IN ('now', 'later')),
        state TEXT NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'running')),
        source TEXT NOT NULL,
        plugin TEXT,
        put_at INTEGER NOT NULL,
        expires_at INTEGER,
        private_at_put INTEGER,
        on_drop TEXT,
        durable INTEGER NOT NULL DEFAULT 1,
        attempts INTEGER NOT NULL DEFAULT 0,
        header ANY NOT NULL,
        payload ANY NOT NULL
    ) STRICT;
    CREATE UNIQUE INDEX inbox_of_chat ON inbox (chat, seq);",
    // 6: values of plugins, each of one chat: `seq` 0 is a key's one value, what is appended to a key counts from 1. What is short
    // stands before what is long, so that counting reads no value.
    "CREATE TABLE plugin_chat_data (
        chat INTEGER NOT NULL REFERENCES chats (id) ON DELETE CASCADE,
        plugin TEXT NOT NULL,
        key TEXT NOT NULL,
        seq INTEGER NOT NULL,
        updated_at INTEGER NOT NULL,
        size INTEGER NOT NULL,
        value ANY NOT NULL,
        PRIMARY KEY (chat, plugin, key, seq)
    ) STRICT;
    CREATE INDEX plugin_chat_data_of_plugin ON plugin_chat_data (plugin, key) WHERE seq = 0;",
    // 7: files that were given to chats, and the pictures that were put into the library of a memory scope. What was taken from a
    // private chat goes with it; what was taken from another one outlives it.
    "CREATE TABLE files (
        id TEXT PRIMARY KEY NOT NULL,
        chat INTEGER NOT NULL REFERENCES chats (id) ON DELETE CASCADE,
        media_type TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        size INTEGER NOT NULL,
        name ANY NOT NULL,
        data BLOB NOT NULL
    ) STRICT;
    CREATE INDEX files_of_chat ON files (chat, created_at, size);
    CREATE TABLE library (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        scope TEXT NOT NULL,
        chat INTEGER REFERENCES chats (id) ON DELETE SET NULL,
        media_type TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        size INTEGER NOT NULL,
        title ANY NOT NULL,
        tags ANY NOT NULL DEFAULT '[]',
        data BLOB NOT NULL
    ) STRICT;
    CREATE INDEX library_of_scope ON library (scope, size);
    CREATE INDEX library_of_chat ON library (chat) WHERE chat IS NOT NULL;
    CREATE TRIGGER library_of_deleted_chat BEFORE DELETE ON chats WHEN OLD.private <> 0 OR OLD.vaulted <> 0 BEGIN
        DELETE FROM library WHERE chat = OLD.id;
    END;",
];

/// The version that this program writes.
pub(super) const VERSION: u32 = MIGRATIONS.len() as u32;

/// Brings a database up to [`VERSION`], each step whole or not at all. `Err(found)` for one that a newer program made.
pub(super) fn migrate(connection: &mut Connection) -> rusqlite::Result<Result<(), u32>> {
    migrate_to(connection, VERSION)
}

/// As [`migrate`], no further than a version. What belongs to a row is kept while its table is made anew, so nothing is taken along
/// by deletions here; that everything still belongs to something is looked at before a step counts.
pub(super) fn migrate_to(connection: &mut Connection, version: u32) -> rusqlite::Result<Result<(), u32>> {
    connection.pragma_update(None, "foreign_keys", false)?;
    let done = steps(connection, version);
    connection.pragma_update(None, "foreign_keys", true)?;
    done
}

fn steps(connection: &mut Connection, version: u32) -> rusqlite::Result<Result<(), u32>> {
    loop {
        // Another process may migrate at the same time: the version is read under the write lock.
        let step = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let done: u32 = step.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        let Some(sql) = MIGRATIONS.get(done as usize).filter(|_| done < version) else {
            return Ok(if done > VERSION { Err(done) } else { Ok(()) });
        };
        step.execute_batch(sql)?;
        if step.prepare("PRAGMA foreign_key_check")?.exists([])? {
            return Err(rusqlite::Error::SqliteFailure(
                rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CONSTRAINT_FOREIGNKEY),
                Some(format!("the database has rows that belong to nothing, so it stays at version {done}")),
            ));
        }
        step.pragma_update(None, "user_version", done + 1)?;
        step.commit()?;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

//! Rows of the journal: added in batches, listed newest first, bounded in bytes and age. What a row means, and what may stand in
//! one, is decided above.

use super::main::{MainDb, explain};
use crate::base::error::Result;
use rusqlite::{Connection, OptionalExtension as _, Row, ToSql, Transaction, params};

/// What a row counts for beside its texts, in bytes: its numbers and its places in the indexes.
const ROW: usize = 200;

/// What a list shows of a call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CallLine {
    /// The id of the call. The newest row counts where several have it.
    pub id: String,
    /// When it began, in milliseconds since 1970-01-01 UTC.
    pub at: i64,
    /// The tool.
    pub tool: String,
    /// The plugin; empty for an unknown tool.
    pub plugin: String,
    /// The generation that ran; 0 where nothing ran.
    pub generation: u64,
    /// Through which door it came.
    pub door: String,
    /// Who called.
    pub caller: String,
    /// In which chat.
    pub chat: Option<String>,
    /// Whether it succeeded.
    pub ok: bool,
    /// The code of its failure.
    pub code: Option<String>,
    /// Wall clock, in microseconds.
    pub duration_us: u64,
    /// One line about how it ended.
    pub summary: String,
}

/// A whole row.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CallRow {
    /// What a list shows.
    pub line: CallLine,
    /// Script operations.
    pub operations: u64,
    /// Highest memory, in bytes.
    pub memory: u64,
    /// What it was given: JSON.
    pub arguments: String,
    /// The model's copy of its result.
    pub text: String,
    /// The person's copy, where it is another.
    pub shown: Option<String>,
    /// Everything else that is known of it: JSON; `None` where there is nothing else.
    pub more: Option<String>,
}

impl CallRow {
    /// What it counts for.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let line = &self.line;
        let texts = [&line.id, &line.tool, &line.plugin, &line.caller, &line.summary, &self.arguments, &self.text];
        let options = [&line.chat, &line.code, &self.shown, &self.more];
        ROW + texts.map(String::len).iter().sum::<usize>()
            + options.map(|text| text.as_ref().map_or(0, String::len)).iter().sum::<usize>()
    }
}

/// Which rows are listed. Each is one condition more.
#[derive(Debug, Clone, Default)]
pub struct Wanted<'a> {
    /// Of this tool.
    pub tool: Option<&'a str>,
    /// Of this plugin.
    pub plugin: Option<&'a str>,
    /// Through this door.
    pub door: Option<&'a str>,
    /// Not through this one.
    pub but_door: Option<&'a str>,
    /// Those that failed.
    pub failed: bool,
    /// Older than the call with this id.
    pub before: Option<&'a str>,
    /// Not older than this, in milliseconds since 1970-01-01 UTC.
    pub since: i64,
    /// At most so many.
    pub limit: usize,
}

/// How much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Most bytes of all rows.
    pub bytes: u64,
    /// Rows that are older go, in milliseconds since 1970-01-01 UTC.
    pub since: i64,
}

impl MainDb {
    /// Adds calls that ended, in this order, in one transaction, and lets the oldest go that there is no room for. A call of a chat
    /// that is private is left out. `dropped` is added to the number of calls that could not be kept.
    ///
    /// # Errors
    /// What the file system says; then nothing is added.
    pub fn add_calls(&self, rows: &[CallRow], dropped: u64, room: &Room) -> Result<()> {
        self.write(|t| {
            let added = insert(t, rows).map_err(|e| explain(&e))?;
            t.prepare("UPDATE journal_totals SET bytes = bytes + ?1, dropped = dropped + ?2")
                .and_then(|mut update| update.execute(params![signed(added), signed(dropped)]))
                .map_err(|e| explain(&e))?;
            trim(t, room).map_err(|e| explain(&e))
        })
    }

    /// Calls, newest first.
    ///
    /// # Errors
    /// What the file system says.
    pub fn calls(&self, wanted: &Wanted) -> Result<Vec<CallLine>> {
        Ok(self.read(|c| list(c, wanted).map_err(|e| explain(&e)))?.unwrap_or_default())
    }

    /// A call by its id, or `None`.
    ///
    /// # Errors
    /// What the file system says.
    pub fn call(&self, id: &str) -> Result<Option<CallRow>> {
        let sql = format!(
            "SELECT {LINE}, operations, memory, arguments, text, shown, more FROM journal WHERE id = ?1 \
             ORDER BY seq DESC LIMIT 1"
        );
        let read = |c: &Connection| c.query_row(&sql, [id], whole).optional().map_err(|e| explain(&e));
        Ok(self.read(read)?.flatten())
    }

    /// How many calls could not be kept since the journal was last cleared.
    ///
    /// # Errors
    /// What the file system says.
    pub fn dropped_calls(&self) -> Result<u64> {
        let read = |c: &Connection| {
            c.query_row("SELECT dropped FROM journal_totals", [], |row| unsigned(row, 0)).map_err(|e| explain(&e))
        };
        Ok(self.read(read)?.unwrap_or(0))
    }

    /// Whether there is a call that began before `since`, looking at the oldest only.
    ///
    /// # Errors
    /// What the file system says.
    pub fn has_calls_before(&self, since: i64) -> Result<bool> {
        let read = |c: &Connection| {
            c.query_row("SELECT at FROM journal ORDER BY seq LIMIT 1", [], |row| row.get::<_, i64>(0))
                .optional()
                .map_err(|e| explain(&e))
        };
        Ok(self.read(read)?.flatten().is_some_and(|oldest| oldest < since))
    }

    /// Deletes every call and gives how many there were. Their bytes are overwritten, and the file gives back their room.
    ///
    /// # Errors
    /// What the file system says.
    pub fn clear_calls(&self) -> Result<u64> {
        // Nothing is made only to delete from it.
        let count = |c: &Connection| {
            c.query_row("SELECT count(*) FROM journal", [], |row| unsigned(row, 0)).map_err(|e| explain(&e))
        };
        if self.read(count)?.is_none() {
            return Ok(0);
        }
        let gone = self.write(|t| {
            let clear = || {
                t.pragma_update(None, "secure_delete", true)?;
                let gone = t.execute("DELETE FROM journal", [])?;
                t.execute("UPDATE journal_totals SET bytes = 0, dropped = 0", [])?;
                t.pragma_update(None, "secure_delete", false)?;
                Ok(gone as u64)
            };
            clear().map_err(|e| explain(&e))
        })?;
        self.vacuum_some();
        self.settle_log();
        Ok(gone)
    }
}

/// Gives the bytes of what it added.
fn insert(t: &Transaction, rows: &[CallRow]) -> rusqlite::Result<u64> {
    let mut is_private = t.prepare("SELECT 1 FROM chats WHERE name = ?1 AND private <> 0")?;
    let mut insert = t.prepare(
        "INSERT INTO journal (id, at, tool, plugin, generation, door, caller, chat, ok, code, duration_us, summary, \
         operations, memory, bytes, arguments, text, shown, more) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)",
    )?;
    let mut added = 0;
    for (n, row) in rows.iter().enumerate() {
        give_way(n);
        let line = &row.line;
        // Whoever calls may not know that the chat is private.
        if let Some(chat) = &line.chat
            && is_private.exists([chat])?
        {
            continue;
        }
        let bytes = row.bytes() as u64;
        insert.execute(params![
            line.id,
            line.at,
            line.tool,
            line.plugin,
            signed(line.generation),
            line.door,
            line.caller,
            line.chat,
            line.ok,
            line.code,
            signed(line.duration_us),
            line.summary,
            signed(row.operations),
            signed(row.memory),
            signed(bytes),
            row.arguments,
            row.text,
            row.shown,
            row.more
        ])?;
        added += bytes;
    }
    Ok(added)
}

/// Now and then lets whoever waits for the processor go first: a batch takes milliseconds, and a call that ends meanwhile has not got
/// them. `done` rows of the batch are done.
pub fn give_way(done: usize) {
    if done % 64 == 63 {
        std::thread::yield_now();
    }
}

/// Lets the oldest go, from the oldest on, until the first that may stay. Of what is too much a tenth more goes, so that not every
/// batch has to delete.
fn trim(t: &Transaction, room: &Room) -> rusqlite::Result<()> {
    let total = t.query_row("SELECT bytes FROM journal_totals", [], |row| unsigned(row, 0))?;
    let most = if total > room.bytes { room.bytes - room.bytes / 10 } else { u64::MAX };
    let mut oldest = t.prepare("SELECT seq, at, bytes FROM journal ORDER BY seq")?;
    let mut rows = oldest.query([])?;
    let (mut last, mut freed, mut stays) = (None, 0, false);
    while let Some(row) = rows.next()? {
        stays = row.get::<_, i64>(1)? >= room.since && total.saturating_sub(freed) <= most;
        if stays {
            break;
        }
        last = Some(row.get::<_, i64>(0)?);
        freed += unsigned(row, 2)?;
    }
    drop(rows);
    if let Some(last) = last {
        t.execute("DELETE FROM journal WHERE seq <= ?1", [last])?;
    }
    // A total that is wrong, whatever made it so, is right again once nothing is left.
    let left = if stays { total.saturating_sub(freed) } else { 0 };
    if left != total {
        t.execute("UPDATE journal_totals SET bytes = ?1", [signed(left)])?;
    }
    Ok(())
}

/// The columns of [`CallLine`], as [`line`] reads them.
const LINE: &str = "id, at, tool, plugin, generation, door, caller, chat, ok, code, duration_us, summary";

fn list(connection: &Connection, wanted: &Wanted) -> rusqlite::Result<Vec<CallLine>> {
    let limit = i64::try_from(wanted.limit).unwrap_or(i64::MAX);
    let mut sql = format!("SELECT {LINE} FROM journal WHERE at >= ?1");
    let mut values: Vec<&dyn ToSql> = vec![&wanted.since, &limit];
    let conditions: [(&str, Option<&&str>); 5] = [
        ("tool =", wanted.tool.as_ref()),
        ("plugin =", wanted.plugin.as_ref()),
        ("door =", wanted.door.as_ref()),
        ("door <>", wanted.but_door.as_ref()),
        ("seq < (SELECT max(seq) FROM journal WHERE id = ", wanted.before.as_ref()),
    ];
    for (condition, value) in conditions {
        if let Some(value) = value {
            values.push(value);
            let end = if condition.contains('(') { ")" } else { "" };
            sql.push_str(&format!(" AND {condition} ?{}{end}", values.len()));
        }
    }
    if wanted.failed {
        sql.push_str(" AND ok = 0");
    }
    sql.push_str(" ORDER BY seq DESC LIMIT ?2");
    connection.prepare(&sql)?.query_map(values.as_slice(), line)?.collect()
}

fn line(row: &Row) -> rusqlite::Result<CallLine> {
    Ok(CallLine {
        id: row.get(0)?,
        at: row.get(1)?,
        tool: row.get(2)?,
        plugin: row.get(3)?,
        generation: unsigned(row, 4)?,
        door: row.get(5)?,
        caller: row.get(6)?,
        chat: row.get(7)?,
        ok: row.get(8)?,
        code: row.get(9)?,
        duration_us: unsigned(row, 10)?,
        summary: row.get(11)?,
    })
}

fn whole(row: &Row) -> rusqlite::Result<CallRow> {
    Ok(CallRow {
        line: line(row)?,
        operations: unsigned(row, 12)?,
        memory: unsigned(row, 13)?,
        arguments: row.get(14)?,
        text: row.get(15)?,
        shown: row.get(16)?,
        more: row.get(17)?,
    })
}

fn signed(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

fn unsigned(row: &Row, at: usize) -> rusqlite::Result<u64> {
    row.get::<_, i64>(at).map(|n| u64::try_from(n).unwrap_or(0))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

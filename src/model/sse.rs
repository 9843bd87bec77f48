//! Server-sent events, from bytes in any cut to the data of each event. Pure; only `data` counts here.

/// Most bytes of one event: more is thrown away up to its end.
const MOST: usize = 8 << 20;

/// Puts the pieces of a stream together.
#[derive(Default)]
pub(super) struct Events {
    line: Vec<u8>,
    data: String,
    has_data: bool,
    after_cr: bool,
    is_started: bool,
}

impl Events {
    /// The data of every event that ends in this piece. Bytes that are no UTF-8 are replaced.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut out = Vec::new();
        for &byte in bytes {
            let after_cr = std::mem::replace(&mut self.after_cr, byte == b'\r');
            match byte {
                b'\n' if after_cr => {}
                b'\r' | b'\n' => self.end_line(&mut out),
                _ if self.line.len() < MOST => self.line.push(byte),
                _ => {}
            }
        }
        out
    }

    /// What stood there when the stream ended, without the line that ends an event.
    pub(super) fn rest(mut self) -> Vec<String> {
        let mut out = Vec::new();
        self.end_line(&mut out);
        self.end_event(&mut out);
        out
    }

    fn end_line(&mut self, out: &mut Vec<String>) {
        let mut line = std::mem::take(&mut self.line);
        if !std::mem::replace(&mut self.is_started, true) && line.starts_with(b"\xef\xbb\xbf") {
            line.drain(..3);
        }
        if line.is_empty() {
            return self.end_event(out);
        }
        let line = String::from_utf8_lossy(&line);
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        if field != "data" {
            return;
        }
        let value = value.strip_prefix(' ').unwrap_or(value);
        // One document a line is how it is done, also by servers that leave out the empty line between two events.
        if self.has_data && is_whole(&self.data) {
            self.end_event(out);
        }
        if self.has_data {
            self.data.push('\n');
        }
        self.has_data = true;
        if self.data.len() + value.len() <= MOST {
            self.data.push_str(value);
        }
    }

    fn end_event(&mut self, out: &mut Vec<String>) {
        if std::mem::take(&mut self.has_data) {
            out.push(std::mem::take(&mut self.data));
        }
    }
}

fn is_whole(data: &str) -> bool {
    data.trim() == "[DONE]" || serde_json::from_str::<serde::de::IgnoredAny>(data).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_the_same_however_their_bytes_are_cut() {
        let rows: [(&[u8], &[&str]); 14] = [
            (b"data: {}\n\n", &["{}"]),
            (b"data:{}\r\n\r\n", &["{}"]),
            (b"data: {}\r\rdata: 1\r\r", &["{}", "1"]),
            (b": hello\n\ndata: a\n\n", &["a"]),
            (b"event: x\nid: 3\nretry: 5\ndata: a\n\n", &["a"]),
            (b"data: {\"a\":\ndata: 1}\n\n", &["{\"a\":\n1}"]),
            (b"data: {\"a\":1}\ndata: {\"b\":2}\ndata: [DONE]\n\n", &["{\"a\":1}", "{\"b\":2}", "[DONE]"]),
            (b"data: a", &["a"]),
            (b"data: a\n", &["a"]),
            (b"\xef\xbb\xbfdata: a\n\n", &["a"]),
            (b"data: \xff\xc3\xa9\n\n", &["\u{fffd}\u{e9}"]),
            (b"data\n\n", &[""]),
            (b"\n\n\n", &[]),
            (b"data: \xf0\x9f\x98\x80:x\n\n", &["\u{1f600}:x"]),
        ];
        for (bytes, want) in rows {
            for size in 1..=bytes.len() {
                let mut events = Events::default();
                let mut got: Vec<String> = bytes.chunks(size).flat_map(|piece| events.take(piece)).collect();
                got.extend(events.rest());
                assert_eq!(got, want, "{} in pieces of {size}", String::from_utf8_lossy(bytes));
            }
        }
    }

    #[test]
    fn an_event_without_an_end_takes_no_more_memory_than_it_may() {
        let mut events = Events::default();
        let piece = vec![b'x'; 1 << 20];
        for _ in 0..20 {
            assert!(events.take(&piece).is_empty());
        }
        assert!(events.line.len() <= MOST);
    }
}

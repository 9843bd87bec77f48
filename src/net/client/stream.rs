//! An answer that is read while it comes: the same lanes, checks, redirects and tape as a whole one, with limits between its
//! pieces in the place of one over everything.

use super::{Client, Got, Limits, explain, heard, listed, redirect, unpacked};
use crate::base::error::{Error, Kind, Result};
use crate::net::Rules;
use crate::net::request::{Request, parse_url};
use reqwest::Url;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// How long an answer may take that is read while it comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// From sending to the first bytes of the body, connecting included.
    pub first: Duration,
    /// Between two pieces.
    pub idle: Duration,
}

impl Default for Pace {
    /// 240 s and 60 s.
    fn default() -> Self {
        Pace { first: Duration::from_secs(240), idle: Duration::from_secs(60) }
    }
}

/// An answer on its way. Dropping it ends the connection.
pub struct Incoming<'a> {
    /// The status code.
    pub status: u16,
    /// Headers in order, names in lower case.
    pub headers: Vec<(String, String)>,
    client: &'a Client,
    rules: &'a dyn Rules,
    url: Url,
    got: Option<Got>,
    max_bytes: usize,
    read: usize,
    /// For the tape, where there is one that listens.
    kept: Vec<u8>,
    pace: Pace,
    until: Instant,
}

impl Client {
    /// As [`Client::send`], but gives the answer as soon as its headers are there. `pace` stands in the place of the request's
    /// `timeout`; its `allowance` does not count.
    ///
    /// # Errors
    /// As for [`Client::send`].
    pub async fn open<'a>(&'a self, request: Request, pace: Pace, rules: &'a dyn Rules) -> Result<Incoming<'a>> {
        let url = parse_url(&request.url, &request.params)?;
        let until = Instant::now() + pace.first;
        let max_bytes = request.max_bytes;
        let arrived = timeout_at(until, self.arrive(request, url.clone(), rules)).await;
        let (got, url) = arrived.unwrap_or_else(|_| Err(silent(&url, pace.first)))?;
        let headers = match &got {
            Got::Live { answer, .. } => listed(answer.headers()),
            Got::Taped(heard) => heard.headers.clone(),
        };
        // Whether any body could be read, before the first piece of it is.
        unpacked(&headers, vec![0], &url).inspect_err(|e| self.tell(got.number(), e))?;
        Ok(Incoming {
            status: got.status(),
            headers,
            client: self,
            rules,
            url,
            got: Some(got),
            max_bytes,
            read: 0,
            kept: Vec::new(),
            pace,
            until,
        })
    }
}

impl Incoming<'_> {
    /// The first header of that name, any case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// Allows less time from now to the next piece, and between those behind it.
    pub fn hasten(&mut self, idle: Duration) {
        self.pace.idle = self.pace.idle.min(idle);
        self.until = self.until.min(Instant::now() + idle);
    }

    /// The next piece of the body; `None` at its end.
    ///
    /// # Errors
    /// `timeout` where nothing comes for too long, `too_large`, `upstream_unavailable` where the connection breaks. There is
    /// nothing to read after one.
    pub async fn chunk(&mut self) -> Result<Option<Vec<u8>>> {
        let Some(got) = &mut self.got else { return Ok(None) };
        let next = match got {
            Got::Taped(heard) => {
                let body = std::mem::take(&mut heard.body);
                Ok((!body.is_empty()).then_some(body))
            }
            Got::Live { answer, lane, .. } => match timeout_at(self.until, answer.chunk()).await {
                Ok(Ok(chunk)) => Ok(chunk.map(|chunk| chunk.to_vec())),
                Ok(Err(e)) => match self.client.settings().proxy(*lane) {
                    Ok(proxy) => Err(explain(e, &self.url, proxy)),
                    Err(e) => Err(e),
                },
                Err(_) if self.read == 0 => Err(silent(&self.url, self.pace.first)),
                Err(_) => Err(Error::new(
                    Kind::Timeout,
                    format!("{} stopped in the middle of its answer", redirect::place(&self.url)),
                )),
            },
        };
        let next = next.and_then(|chunk| {
            self.read += chunk.as_ref().map_or(0, Vec::len);
            let limits = Limits { max_bytes: self.max_bytes, allowance: None };
            limits.take(0, self.read, &self.url).map(|()| chunk)
        });
        self.until = Instant::now() + self.pace.idle;
        match &next {
            Ok(Some(chunk)) if got.number().is_some() => self.kept.extend_from_slice(chunk),
            Ok(Some(_)) => {}
            Ok(None) => self.end(None)?,
            Err(e) => self.end(Some(e))?,
        }
        next
    }

    /// Tells the tape how it ended.
    fn end(&mut self, failed: Option<&Error>) -> Result<()> {
        let Some(got) = self.got.take() else { return Ok(()) };
        let Some(number) = got.number() else { return Ok(()) };
        if let Some(error) = failed {
            self.client.tell(Some(number), error);
        } else if let Some(tape) = &self.client.settings().tape {
            let body = std::mem::take(&mut self.kept);
            tape.keep(number, heard(self.status, self.headers.clone(), body, self.rules)?);
        }
        Ok(())
    }
}

impl Drop for Incoming<'_> {
    fn drop(&mut self) {
        let stopped = Error::new(Kind::Cancelled, "the answer was not read to its end");
        // What cannot be written down without a secret is not written down.
        let _ = self.end(Some(&stopped));
    }
}

fn silent(url: &Url, limit: Duration) -> Error {
    Error::new(Kind::Timeout, format!("{} did not answer within {} s", redirect::place(url), limit.as_secs_f64()))
}

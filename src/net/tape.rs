//! What may stand between the client and the network: something that answers a hop itself, or writes down what was answered.
//! It is asked after every check that needs no connection, and sees no value of a credential.

use crate::base::error::{Error, Result};

/// A request's hop as it would be sent, without values of credentials.
#[derive(Clone)]
pub struct Hop {
    /// The method, in capitals.
    pub method: String,
    /// The whole address.
    pub url: String,
    /// Headers in order, names in lower case, those of the profile included; none for cookies.
    pub headers: Vec<(String, String)>,
    /// The encoded body; `None` where nothing is sent.
    pub body: Option<Vec<u8>>,
}

/// The answer to a hop, without values of credentials.
#[derive(Clone)]
pub struct Heard {
    /// The status code.
    pub status: u16,
    /// Headers in order, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body, decompressed; empty for an answer that is followed elsewhere.
    pub body: Vec<u8>,
}

/// What becomes of a hop.
pub enum Play {
    /// This answer, and nothing is sent.
    Answer(Heard),
    /// It is sent; what comes of it is told under this number.
    Send(usize),
}

/// Stands in for the network, or listens to it.
pub trait Tape: Send + Sync {
    /// What becomes of a hop.
    ///
    /// # Errors
    /// The hop fails with it, and nothing is sent.
    fn ask(&self, hop: Hop) -> Result<Play>;

    /// Hears the answer to a hop that was sent; gives it as it is passed on.
    fn keep(&self, number: usize, heard: Heard) -> Heard;

    /// Hears that a hop failed.
    fn failed(&self, number: usize, error: &Error);
}

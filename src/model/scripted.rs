//! A model that says what a script of steps tells it to, for tests: pieces of text, calls, errors, a wait until released, a panic.
//! It writes down what it was asked, and reaches nothing.

use super::{Delta, Finish, Message, Model, Profile, Reply, Replying, Request, ToolCall, Usage};
use crate::base::error::{Error, Kind, Result};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// What the model was asked, kept for the test to look at.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The conversation.
    pub messages: Vec<Message>,
    /// The definitions of tools.
    pub tools: Vec<serde_json::Value>,
    /// The temperature, if one was given.
    pub temperature: Option<f64>,
    /// The limit of tokens, if one was given.
    pub max_tokens: Option<u32>,
}

/// Where a reply waits until the test lets it go on. Cheap to clone; every clone is the same gate.
#[derive(Clone, Default)]
pub struct Gate(Arc<GateInner>);

#[derive(Default)]
struct GateInner {
    state: Mutex<GateState>,
    reached: Condvar,
    open: Notify,
}

#[derive(Default)]
struct GateState {
    waiting: usize,
    is_open: bool,
}

/// A reply that waits at a gate; dropped, it waits no longer.
struct AtGate<'a>(&'a Gate);

impl Drop for AtGate<'_> {
    fn drop(&mut self) {
        self.0.state().waiting -= 1;
        self.0.0.reached.notify_all();
    }
}

impl Gate {
    /// A closed gate.
    #[must_use]
    pub fn new() -> Gate {
        Gate::default()
    }

    /// Lets every reply through, now and later.
    pub fn release(&self) {
        self.state().is_open = true;
        self.0.open.notify_waiters();
    }

    /// Blocks until a reply waits here.
    pub fn wait_reached(&self) {
        let state = self.0.reached.wait_while(self.state(), |state| state.waiting == 0);
        drop(state.unwrap_or_else(PoisonError::into_inner));
    }

    /// Blocks until no reply waits here any more: all went on, or were dropped.
    pub fn wait_left(&self) {
        let state = self.0.reached.wait_while(self.state(), |state| state.waiting > 0);
        drop(state.unwrap_or_else(PoisonError::into_inner));
    }

    async fn pass(&self) {
        self.state().waiting += 1;
        let _here = AtGate(self);
        self.0.reached.notify_all();
        loop {
            let open = self.0.open.notified();
            tokio::pin!(open);
            // Before the flag is read: a release between the two is not missed.
            open.as_mut().enable();
            if self.state().is_open {
                return;
            }
            open.await;
        }
    }

    fn state(&self) -> MutexGuard<'_, GateState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Clone)]
enum Piece {
    Text(String),
    Thinking(String),
    Call(ToolCall),
    Stall(Gate),
    Fail(Error),
    Panic(String),
}

/// One reply, piece by piece.
#[derive(Clone, Default)]
pub struct Step {
    pieces: Vec<Piece>,
    finish: Option<Finish>,
    usage: Option<Usage>,
}

impl Step {
    /// A reply without anything in it.
    #[must_use]
    pub fn new() -> Step {
        Step::default()
    }

    /// A reply that says this.
    #[must_use]
    pub fn says(text: impl Into<String>) -> Step {
        Step::new().text(text)
    }

    /// A reply that calls a tool.
    #[must_use]
    pub fn calls(id: &str, name: &str, arguments: impl Into<String>) -> Step {
        Step::new().call(id, name, arguments)
    }

    /// A reply that is an error.
    #[must_use]
    pub fn fails(error: Error) -> Step {
        Step::new().fail(error)
    }

    /// A further piece of text, told by itself.
    #[must_use]
    pub fn text(mut self, text: impl Into<String>) -> Step {
        self.pieces.push(Piece::Text(text.into()));
        self
    }

    /// A further piece of thought.
    #[must_use]
    pub fn thinking(mut self, text: impl Into<String>) -> Step {
        self.pieces.push(Piece::Thinking(text.into()));
        self
    }

    /// A further call. Ids and arguments are passed on as they are, bad ones too.
    #[must_use]
    pub fn call(mut self, id: &str, name: &str, arguments: impl Into<String>) -> Step {
        self.pieces.push(Piece::Call(ToolCall { id: id.into(), name: name.into(), arguments: arguments.into() }));
        self
    }

    /// Waits here until the gate is released.
    #[must_use]
    pub fn stall(mut self, gate: &Gate) -> Step {
        self.pieces.push(Piece::Stall(gate.clone()));
        self
    }

    /// Ends here with an error; what was told before stays told.
    #[must_use]
    pub fn fail(mut self, error: Error) -> Step {
        self.pieces.push(Piece::Fail(error));
        self
    }

    /// Panics here.
    #[must_use]
    pub fn panic(mut self, why: impl Into<String>) -> Step {
        self.pieces.push(Piece::Panic(why.into()));
        self
    }

    /// Why the reply ends, where it is not what its pieces say.
    #[must_use]
    pub fn finish(mut self, finish: Finish) -> Step {
        self.finish = Some(finish);
        self
    }

    /// The tokens that the reply tells.
    #[must_use]
    pub fn usage(mut self, input: u64, output: u64) -> Step {
        self.usage = Some(Usage { input, output });
        self
    }
}

type Answering = Box<dyn Fn(&Asked) -> Step + Send + Sync>;

enum Plot {
    Steps(Mutex<VecDeque<Step>>),
    By(Answering),
}

/// A model that follows a script.
pub struct Scripted {
    profile: Profile,
    plot: Plot,
    asked: Mutex<Vec<Asked>>,
}

impl Scripted {
    /// A model of that name that replies with one step after the other, and with an error after the last.
    #[must_use]
    pub fn new(name: &str, steps: impl IntoIterator<Item = Step>) -> Scripted {
        Scripted::of(name, Plot::Steps(Mutex::new(steps.into_iter().collect())))
    }

    /// A model of that name whose reply follows from what it is asked.
    #[must_use]
    pub fn by(name: &str, answer: impl Fn(&Asked) -> Step + Send + Sync + 'static) -> Scripted {
        Scripted::of(name, Plot::By(Box::new(answer)))
    }

    fn of(name: &str, plot: Plot) -> Scripted {
        Scripted { profile: Profile::new(name, "scripted"), plot, asked: Mutex::default() }
    }

    /// With another profile; its name stays.
    #[must_use]
    pub fn with_profile(mut self, change: impl FnOnce(&mut Profile)) -> Scripted {
        change(&mut self.profile);
        self
    }

    /// Adds a step behind the others. One that answers by a function takes none.
    pub fn push(&self, step: Step) {
        if let Plot::Steps(steps) = &self.plot {
            steps.lock().unwrap_or_else(PoisonError::into_inner).push_back(step);
        }
    }

    /// What it was asked so far.
    #[must_use]
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn next(&self, asked: &Asked) -> Result<Step> {
        match &self.plot {
            Plot::By(answer) => Ok(answer(asked)),
            Plot::Steps(steps) => {
                let next = steps.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                next.ok_or_else(|| {
                    Error::new(Kind::UpstreamUnavailable, "the script of the model has no further step")
                        .with_retryable(false)
                })
            }
        }
    }
}

impl Model for Scripted {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    fn reply<'a>(&'a self, request: &'a Request<'a>, told: &'a mut (dyn FnMut(Delta) + Send)) -> Replying<'a> {
        Box::pin(async move {
            let asked = Asked {
                messages: request.messages.to_vec(),
                tools: request.tools.to_vec(),
                temperature: request.temperature,
                max_tokens: request.max_tokens,
            };
            let step = self.next(&asked);
            self.asked.lock().unwrap_or_else(PoisonError::into_inner).push(asked);
            let step = step?;
            let (mut text, mut thinking, mut calls) = (String::new(), String::new(), Vec::<ToolCall>::new());
            for piece in step.pieces {
                match piece {
                    Piece::Text(piece) => {
                        told(Delta::Text(&piece));
                        text.push_str(&piece);
                    }
                    Piece::Thinking(piece) => {
                        told(Delta::Thinking(&piece));
                        thinking.push_str(&piece);
                    }
                    Piece::Call(call) => {
                        told(Delta::CallNamed { index: calls.len(), id: &call.id, name: &call.name });
                        calls.push(call);
                    }
                    Piece::Stall(gate) => gate.pass().await,
                    Piece::Fail(error) => return Err(error),
                    Piece::Panic(why) => panic!("{why}"),
                }
            }
            let by_itself = if calls.is_empty() { Finish::Stop } else { Finish::Calls };
            Ok(Reply { text, thinking, calls, finish: step.finish.unwrap_or(by_itself), usage: step.usage })
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::Models;
    use super::*;

    fn answer(model: &dyn Model, request: &Request) -> (Vec<String>, Result<Reply>) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut heard = Vec::new();
        let mut told = |delta: Delta| heard.push(format!("{delta:?}"));
        let reply = runtime.block_on(model.reply(request, &mut told));
        (heard, reply)
    }

    #[test]
    fn a_script_is_followed_piece_by_piece_and_ends_in_an_error() {
        let gate = Gate::new();
        let model = Arc::new(Scripted::new(
            "one",
            [
                Step::says("a").thinking("t").text("b").usage(3, 2),
                Step::says("half").call("c1", "roll", "{").fail(Error::internal("gone")),
                Step::new().stall(&gate).text("late"),
            ],
        ));
        let messages = [Message::User(vec![super::super::Content::Text("hi".into())])];
        let request = Request { messages: &messages, ..Request::default() };
        let (heard, reply) = answer(&*model, &request);
        assert_eq!(heard, ["Text(\"a\")", "Thinking(\"t\")", "Text(\"b\")"]);
        let reply = reply.unwrap();
        assert_eq!((reply.text.as_str(), reply.thinking.as_str(), reply.finish), ("ab", "t", Finish::Stop));
        let (heard, reply) = answer(&*model, &request);
        assert_eq!(heard.len(), 2);
        assert_eq!(reply.unwrap_err().message(), "gone");
        let waiting = std::thread::spawn({
            let model = model.clone();
            move || answer(&*model, &Request::default()).1
        });
        gate.wait_reached();
        gate.release();
        assert_eq!(waiting.join().unwrap().unwrap().text, "late");
        gate.wait_left();
        assert!(answer(&*model, &request).1.is_err());
        assert_eq!(model.asked().len(), 4);
        assert_eq!(model.asked()[0].messages, messages);
    }

    #[test]
    fn a_model_is_found_by_its_name_and_the_first_is_the_first() {
        let models = Models::default();
        assert!(models.first().is_none() && models.find("a").is_none());
        for name in ["a", "b", "a"] {
            models.add(Arc::new(Scripted::by(name, |asked| Step::says(asked.messages.len().to_string()))));
        }
        assert_eq!(models.profiles().iter().map(|p| p.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(models.first().unwrap().profile().name, "a");
        assert_eq!(answer(&*models.find("b").unwrap(), &Request::default()).1.unwrap().text, "0");
        models.replace(Vec::new());
        assert!(models.all().is_empty());
    }
}

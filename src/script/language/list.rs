//! Lists and maps: comparing, finding and sorting that know how deep and how long they may go, and answer a stop.

use super::super::control;
use super::super::ctx::{OrRaise, Res, raise};
use super::super::value::{self, type_name};
use super::{DEEPEST, len_of, pure};
use crate::base::error::{Error, Kind};
use rhai::{Array, Dynamic, Engine, EvalAltResult, FnPtr, ImmutableString, Map, NativeCallContext};
use std::cmp::Ordering;

pub(super) fn register(engine: &mut Engine) {
    engine.register_fn("pad", |call: NativeCallContext, list: &mut Array, len: i64, item: Dynamic| -> Res<()> {
        if len_of(len) > list.len() {
            control::reserve((len_of(len) - list.len()).saturating_mul(value::weight(&item))).or_raise(&call)?;
            list.resize(len_of(len), item);
        }
        Ok(())
    });
    pure(engine, "==", |call: NativeCallContext, a: &mut Array, b: Array| -> Res<bool> {
        Compare::new(&call).lists(a, &b, 0)
    });
    pure(engine, "!=", |call: NativeCallContext, a: &mut Array, b: Array| -> Res<bool> {
        Ok(!Compare::new(&call).lists(a, &b, 0)?)
    });
    pure(engine, "==", |call: NativeCallContext, a: &mut Map, b: Map| -> Res<bool> {
        Compare::new(&call).maps(a, &b, 0)
    });
    pure(engine, "!=", |call: NativeCallContext, a: &mut Map, b: Map| -> Res<bool> {
        Ok(!Compare::new(&call).maps(a, &b, 0)?)
    });
    pure(engine, "contains", |call: NativeCallContext, list: &mut Array, wanted: Dynamic| -> Res<bool> {
        Ok(find(&call, list, &wanted, 0)?.is_some())
    });
    pure(engine, "index_of", |call: NativeCallContext, list: &mut Array, wanted: Dynamic| -> Res<i64> {
        position(find(&call, list, &wanted, 0)?)
    });
    pure(engine, "index_of", |call: NativeCallContext, list: &mut Array, wanted: Dynamic, start: i64| -> Res<i64> {
        let start = if start < 0 { list.len().saturating_sub(len_of(start.saturating_neg())) } else { len_of(start) };
        position(find(&call, list, &wanted, start)?)
    });
    engine.register_fn("dedup", |call: NativeCallContext, list: &mut Array| -> Res<()> {
        let mut compare = Compare::new(&call);
        let mut out: Array = Vec::with_capacity(list.len());
        for item in list.drain(..) {
            let same = match out.last() {
                Some(last) => compare.values(last, &item, 0)?,
                None => false,
            };
            if !same {
                out.push(item);
            }
        }
        *list = out;
        Ok(())
    });
    sorting(engine);
}

fn position(found: Option<usize>) -> Res<i64> {
    Ok(found.and_then(|at| i64::try_from(at).ok()).unwrap_or(-1))
}

fn find(call: &NativeCallContext, list: &Array, wanted: &Dynamic, start: usize) -> Res<Option<usize>> {
    let mut compare = Compare::new(call);
    for (at, item) in list.iter().enumerate().skip(start) {
        if compare.values(item, wanted, 0)? {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

/// A comparison that counts what it does.
struct Compare<'a, 'c> {
    call: &'a NativeCallContext<'c>,
    /// Work not yet counted: one for each value, one for each 64 bytes of text.
    work: u64,
}

impl<'a, 'c> Compare<'a, 'c> {
    fn new(call: &'a NativeCallContext<'c>) -> Self {
        Compare { call, work: 0 }
    }

    fn works(&mut self, bytes: usize) -> Res<()> {
        self.work += 1 + (bytes as u64 >> 6);
        if self.work >= 1024 {
            control::work(std::mem::take(&mut self.work)).or_raise(self.call)?;
        }
        Ok(())
    }

    fn lists(&mut self, a: &Array, b: &Array, depth: usize) -> Res<bool> {
        if a.len() != b.len() {
            return Ok(false);
        }
        for (a, b) in a.iter().zip(b) {
            if !self.values(a, b, depth + 1)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn maps(&mut self, a: &Map, b: &Map, depth: usize) -> Res<bool> {
        if a.len() != b.len() {
            return Ok(false);
        }
        for ((key, a), (other, b)) in a.iter().zip(b) {
            if key != other || !self.values(a, b, depth + 1)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn values(&mut self, a: &Dynamic, b: &Dynamic, depth: usize) -> Res<bool> {
        if depth > DEEPEST {
            let error =
                Error::new(Kind::TooLarge, format!("values that nest deeper than {DEEPEST} levels cannot be compared"));
            return Err(raise(self.call, &error));
        }
        self.works(0)?;
        if let (Ok(a), Ok(b)) = (a.as_int(), b.as_int()) {
            return Ok(a == b);
        }
        if let Some(a) = a.read_lock::<ImmutableString>() {
            let Some(b) = b.read_lock::<ImmutableString>() else {
                return self.by_operator(a.clone().into(), b.clone());
            };
            self.works(if a.len() == b.len() { a.len() } else { 0 })?;
            return Ok(*a == *b);
        }
        if let Some(a) = a.read_lock::<Array>() {
            return match b.read_lock::<Array>() {
                Some(b) => self.lists(&a, &b, depth),
                None => Ok(false),
            };
        }
        if let Some(a) = a.read_lock::<Map>() {
            return match b.read_lock::<Map>() {
                Some(b) => self.maps(&a, &b, depth),
                None => Ok(false),
            };
        }
        if b.is_array() || b.is_map() {
            return Ok(false);
        }
        self.by_operator(a.clone(), b.clone())
    }

    /// What the operator says of two values that are no containers; different types without one are not equal.
    fn by_operator(&self, mut a: Dynamic, mut b: Dynamic) -> Res<bool> {
        let same_type = a.type_id() == b.type_id();
        match self.call.call_native_fn_raw("==", true, &mut [&mut a, &mut b]) {
            Ok(said) => Ok(said.as_bool().unwrap_or(false)),
            Err(e) if !same_type && matches!(*e, EvalAltResult::ErrorFunctionNotFound(..)) => Ok(false),
            Err(e) => Err(e),
        }
    }
}

fn sorting(engine: &mut Engine) {
    for (name, order) in [("sort", Ordering::Less), ("sort_desc", Ordering::Greater)] {
        engine.register_fn(name, move |call: NativeCallContext, list: &mut Array| sort_plain(&call, list, order));
    }
    for (name, order) in [("order", Ordering::Less), ("order_desc", Ordering::Greater)] {
        pure(engine, name, move |call: NativeCallContext, list: &mut Array| -> Res<Array> {
            let mut copy = list.clone();
            sort_plain(&call, &mut copy, order)?;
            Ok(copy)
        });
    }
    for name in ["sort", "sort_by"] {
        engine.register_fn(name, |call: NativeCallContext, list: &mut Array, by: FnPtr| sort_by(&call, list, &by));
    }
    for name in ["order", "order_by"] {
        pure(engine, name, |call: NativeCallContext, list: &mut Array, by: FnPtr| -> Res<Array> {
            let mut copy = list.clone();
            sort_by(&call, &mut copy, &by)?;
            Ok(copy)
        });
    }
}

/// Sorts values of one type; `first` is the order in which two of them shall stand.
fn sort_plain(call: &NativeCallContext, list: &mut Array, first: Ordering) -> Res<()> {
    let Some(kind) = list.first().map(Dynamic::type_id) else { return Ok(()) };
    if let Some(other) = list.iter().find(|item| item.type_id() != kind) {
        let (a, b) = (type_name(&list[0]), type_name(other));
        let error = Error::invalid(format!("values of different types cannot be sorted: {a} and {b}"));
        return Err(raise(call, &error.hint("say how: list.sort(|a, b| ..)")));
    }
    let mut work = Compare::new(call);
    merge_sort(list, &mut |a, b| {
        work.works(0)?;
        let order = if let (Ok(a), Ok(b)) = (a.as_int(), b.as_int()) {
            a.cmp(&b)
        } else if let (Some(a), Some(b)) = (a.read_lock::<ImmutableString>(), b.read_lock::<ImmutableString>()) {
            work.works(a.len().min(b.len()))?;
            a.as_str().cmp(b.as_str())
        } else if let (Ok(a), Ok(b)) = (a.as_float(), b.as_float()) {
            a.total_cmp(&b)
        } else if let (Ok(a), Ok(b)) = (a.as_char(), b.as_char()) {
            a.cmp(&b)
        } else if let (Ok(a), Ok(b)) = (a.as_bool(), b.as_bool()) {
            a.cmp(&b)
        } else if a.is_unit() {
            Ordering::Equal
        } else {
            let error = Error::invalid(format!("values of type {} cannot be sorted", type_name(a)));
            return Err(raise(call, &error.hint("say how: list.sort(|a, b| ..)")));
        };
        Ok(if first == Ordering::Less { order } else { order.reverse() })
    })
}

/// Sorts as the script says: a number below, at or above zero, or whether the first may stand before the second.
fn sort_by(call: &NativeCallContext, list: &mut Array, by: &FnPtr) -> Res<()> {
    merge_sort(list, &mut |a, b| {
        let said = by.call_within_context::<Dynamic>(call, (a.clone(), b.clone()))?;
        if let Ok(n) = said.as_int() {
            return Ok(n.cmp(&0));
        }
        if let Ok(before) = said.as_bool() {
            return Ok(if before { Ordering::Less } else { Ordering::Greater });
        }
        if let Ok(n) = said.as_float() {
            return Ok(n.partial_cmp(&0.0).unwrap_or(Ordering::Equal));
        }
        let error = Error::invalid(format!("the function that sorts returned {}", type_name(&said)));
        Err(raise(call, &error.hint("return a number below, at or above zero, or true where a stands before b")))
    })
}

/// A stable sort that bears any order, however inconsistent, and ends at the first error.
fn merge_sort(list: &mut Array, order: &mut dyn FnMut(&Dynamic, &Dynamic) -> Res<Ordering>) -> Res<()> {
    let mut width = 1;
    let mut from = std::mem::take(list);
    let mut result = Ok(());
    while width < from.len() && result.is_ok() {
        let mut to: Array = Vec::with_capacity(from.len());
        let len = from.len();
        let mut start = 0;
        while start < len {
            let (middle, end) = ((start + width).min(len), (start + 2 * width).min(len));
            let (mut left, mut right) = (start, middle);
            while left < middle && right < end {
                let take_left = result.is_err()
                    || match order(&from[left], &from[right]) {
                        Ok(order) => order != Ordering::Greater,
                        Err(e) => {
                            result = Err(e);
                            true
                        }
                    };
                let next = if take_left { &mut left } else { &mut right };
                to.push(std::mem::take(&mut from[*next]));
                *next += 1;
            }
            for at in (left..middle).chain(right..end) {
                to.push(std::mem::take(&mut from[at]));
            }
            start = end;
        }
        from = to;
        width *= 2;
    }
    *list = from;
    result
}

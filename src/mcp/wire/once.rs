//! JSON in which no object has a key twice, read in the one pass that reads it anyway. It knows no message.

use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Number, Value};
use std::fmt;

/// A value whose objects each have a key once; a text that has one twice does not deserialize.
pub(super) struct Once<T>(pub(super) T);

impl<'de> Deserialize<'de> for Once<Value> {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        reader.deserialize_any(AnyValue).map(Once)
    }
}

impl<'de> Deserialize<'de> for Once<Map<String, Value>> {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        reader.deserialize_map(Object).map(Once)
    }
}

struct Object;

impl<'de> Visitor<'de> for Object {
    type Value = Map<String, Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut map = Map::new();
        while let Some((key, Once(value))) = entries.next_entry::<String, Once<Value>>()? {
            if map.insert(key, value).is_some() {
                return Err(A::Error::custom("a key stands twice in one object"));
            }
        }
        Ok(map)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Once(item)) = items.next_element::<Once<Value>>()? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<Value, A::Error> {
        Object.visit_map(entries).map(Value::Object)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn it_reads_what_the_usual_reader_reads_but_for_a_key_that_stands_twice() {
        for text in [
            "null",
            "true",
            "[1,-2,2.5,18446744073709551615,\"a\\n\",null]",
            r#"{"a":{"k":1},"b":{"k":[{"k":{}}]},"s":"\u00e9"}"#,
            "{}",
        ] {
            let read: Once<Value> = serde_json::from_str(text).unwrap();
            assert_eq!(read.0, serde_json::from_str::<Value>(text).unwrap(), "{text}");
        }
        for text in [r#"{"a":1,"a":1}"#, r#"[{"b":{"a":1,"\u0061":2}}]"#, "1e999", "[1", "{} {}"] {
            assert!(serde_json::from_str::<Once<Value>>(text).is_err(), "{text}");
        }
    }
}

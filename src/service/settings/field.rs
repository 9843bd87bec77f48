//! Declared settings as pure values: what a field is, defaults under stored values, and what a person may set.
//! Knows nothing of files, forms or scripts.

use crate::base::error::{Error, Kind, Result, excerpt};
use crate::base::json;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};
use std::collections::BTreeSet;

/// A text may have this many bytes.
pub const MAX_TEXT_BYTES: usize = 64 << 10;
/// A list may have this many entries.
pub const MAX_LIST: usize = 1000;

/// The type of a setting.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FieldType {
    /// One line of text.
    #[default]
    String,
    /// Text of several lines.
    #[serde(rename = "textarea", alias = "text")]
    Text,
    /// A whole or decimal number.
    Number,
    /// Yes or no.
    Boolean,
    /// A list of texts.
    List,
}

impl FieldType {
    /// The word in manifests.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            FieldType::String => "string",
            FieldType::Text => "textarea",
            FieldType::Number => "number",
            FieldType::Boolean => "boolean",
            FieldType::List => "list",
        }
    }

    /// What fits, as an error says it.
    const fn expected(self) -> &'static str {
        match self {
            FieldType::String | FieldType::Text => "a text",
            FieldType::Number => "a number",
            FieldType::Boolean => "true or false",
            FieldType::List => "a list such as [\"a\", \"b\"]",
        }
    }

    fn fits(self, value: &Value) -> bool {
        match self {
            FieldType::String | FieldType::Text => value.is_string(),
            FieldType::Number => value.is_number(),
            FieldType::Boolean => value.is_boolean(),
            FieldType::List => {
                value.as_array().is_some_and(|items| items.iter().all(|item| !item.is_object() && !item.is_array()))
            }
        }
    }

    /// The value of a field that declares no default.
    fn empty(self) -> Value {
        match self {
            FieldType::String | FieldType::Text => Value::from(""),
            FieldType::Number => Value::from(0),
            FieldType::Boolean => Value::Bool(false),
            FieldType::List => Value::Array(Vec::new()),
        }
    }
}

/// How a form shows a field; without it the type decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Widget {
    /// Several lines.
    Textarea,
    /// Shown as dots. The value is stored in the settings file as it is; keys belong in credentials.
    Password,
    /// A drop-down of the options.
    Select,
    /// One button for each option.
    Radio,
    /// A button that runs something.
    Button,
}

/// One choice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Choice {
    /// With a text for people.
    Labelled {
        /// What people read.
        label: String,
        /// What is stored.
        value: Value,
    },
    /// The value is its own text.
    Plain(Value),
}

impl Choice {
    /// What is stored.
    #[must_use]
    pub fn value(&self) -> &Value {
        match self {
            Choice::Labelled { value, .. } | Choice::Plain(value) => value,
        }
    }
}

/// A dialog before a dangerous value is saved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Confirm {
    /// The values that ask.
    pub values: Vec<Value>,
    /// Its heading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What may happen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// What the button says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub button_label: Option<String>,
}

/// One setting of a plugin, as a manifest or a script declares it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Field {
    /// The name scripts use: letters, digits, `_`, `-` and `.`, at most 64.
    pub key: String,
    /// Its type.
    #[serde(rename = "type", default)]
    pub kind: FieldType,
    /// What people read beside it; made from the key where it is empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub label: String,
    /// The value until a person sets one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// A sentence of explanation.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub help: String,
    /// How a form shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub widget: Option<Widget>,
    /// The only values that are allowed; empty means any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<Choice>,
    /// A faint text in an empty box.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub placeholder: String,
    /// The page of the form; `General` where it is empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tab: String,
    /// A dialog before some values are saved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm: Option<Confirm>,
    /// A route of the plugin that lists suggestions for a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options_endpoint: Option<String>,
    /// Where in that route's answer the list is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_key: Option<String>,
    /// Which field of an entry is the value; `name` unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_field: Option<String>,
}

impl Field {
    /// Whether its value is shown as dots and never printed.
    #[must_use]
    pub fn is_secret(&self) -> bool {
        self.widget == Some(Widget::Password)
    }

    /// The default, or the type's empty value.
    #[must_use]
    pub fn default_value(&self) -> Value {
        self.default.clone().unwrap_or_else(|| self.kind.empty())
    }

    /// Checks the declaration itself.
    ///
    /// # Errors
    /// `invalid_arguments` naming the key and what is wrong: the key's letters, a default or option of another type, a default
    /// that is not among the options, a widget that needs options, a confirmation of a value that cannot be.
    pub fn validate(&self) -> Result<()> {
        let shown = excerpt(&self.key, 64);
        let refuse = |what: String| Err(Error::invalid(format!("the setting `{shown}`: {what}")));
        if !valid_key(&self.key) {
            return refuse("a key is 1 to 64 letters, digits, `_`, `-` or `.`".into());
        }
        if let Some(wrong) =
            self.options.iter().map(Choice::value).find(|value| !self.kind.fits(value) && self.kind != FieldType::List)
        {
            return refuse(format!("the option {} is not {}", brief(wrong), self.kind.expected()));
        }
        if matches!(self.widget, Some(Widget::Select | Widget::Radio))
            && self.options.is_empty()
            && self.options_endpoint.is_none()
        {
            return refuse("a select or radio needs options".into());
        }
        if let Some(default) = &self.default {
            if !self.kind.fits(default) {
                return refuse(format!("the default {} is not {}", brief(default), self.kind.expected()));
            }
            if !self.offers(default) && default != &self.kind.empty() {
                return refuse(format!("the default {} is not one of the options", brief(default)));
            }
        }
        if let Some(wrong) = self.confirm.iter().flat_map(|c| &c.values).find(|value| !self.kind.fits(value)) {
            return refuse(format!("the confirmed value {} is not {}", brief(wrong), self.kind.expected()));
        }
        Ok(())
    }

    /// Whether the options, if there are any, hold the value (for a list: every entry).
    fn offers(&self, value: &Value) -> bool {
        let listed = |value: &Value| self.options.iter().any(|choice| choice.value() == value);
        self.options.is_empty()
            || match (self.kind, value) {
                (FieldType::List, Value::Array(items)) => items.iter().all(listed),
                _ => listed(value),
            }
    }

    /// The value as it will be stored, from JSON or from a text typed in a terminal.
    ///
    /// # Errors
    /// `invalid_arguments` naming key, expected and got; `too_large` for a long text or list.
    pub fn coerce(&self, value: &Value) -> Result<Value> {
        let coerced = match (self.kind, value) {
            (FieldType::Boolean, Value::String(text)) => truth(text).map(Value::Bool),
            (FieldType::Number, Value::String(text)) => number(text),
            (FieldType::List, Value::String(text)) => json::parse(text).ok().filter(Value::is_array),
            _ => Some(value.clone()),
        };
        let coerced =
            coerced.filter(|value| self.kind.fits(value)).ok_or_else(|| self.reject(self.kind.expected(), value))?;
        match &coerced {
            Value::String(text) if text.len() > MAX_TEXT_BYTES => {
                return Err(self.too_large(text.len(), MAX_TEXT_BYTES, "bytes"));
            }
            Value::Array(items) if items.len() > MAX_LIST => {
                return Err(self.too_large(items.len(), MAX_LIST, "entries"));
            }
            _ => {}
        }
        if !self.offers(&coerced) {
            let options: Vec<String> = self.options.iter().map(|choice| brief(choice.value())).collect();
            return Err(self.reject(&format!("one of {}", options.join(", ")), value));
        }
        Ok(coerced)
    }

    fn reject(&self, expected: &str, got: &Value) -> Error {
        Error::invalid(format!("the setting `{}`: expected {expected}, got {}", self.key, brief(got)))
    }

    fn too_large(&self, size: usize, limit: usize, unit: &str) -> Error {
        Error::new(Kind::TooLarge, format!("the setting `{}` has {size} {unit}; at most {limit} are stored", self.key))
    }
}

/// Checks every declaration, and that no key stands twice.
///
/// # Errors
/// As [`Field::validate`], for the first that is wrong.
pub fn validate(fields: &[Field]) -> Result<()> {
    let mut keys = BTreeSet::new();
    for field in fields {
        field.validate()?;
        if !keys.insert(field.key.as_str()) {
            return Err(Error::invalid(format!("the setting `{}` is declared twice", field.key)));
        }
    }
    Ok(())
}

/// Fields for a script's `SETTINGS` (key to default) and `SETTINGS_HELP` (key to sentence): the type is the default's type, the
/// label is the key in title case. A value that no setting can have, a map or `()`, makes no field; `undeclared` names them.
#[must_use]
pub fn fields_from_script(settings: &Value, help: &Value) -> Vec<Field> {
    let Some(settings) = settings.as_object() else { return Vec::new() };
    settings
        .iter()
        .filter_map(|(key, default)| {
            let kind = match default {
                Value::Bool(_) => FieldType::Boolean,
                Value::Number(_) => FieldType::Number,
                Value::String(text) if text.contains('\n') => FieldType::Text,
                Value::String(_) => FieldType::String,
                Value::Array(_) if FieldType::List.fits(default) => FieldType::List,
                _ => return None,
            };
            valid_key(key).then(|| Field {
                key: key.clone(),
                kind,
                label: label_of(key),
                default: Some(default.clone()),
                help: help.get(key).and_then(Value::as_str).unwrap_or_default().to_string(),
                ..Field::default()
            })
        })
        .collect()
}

/// Keys of a script's `SETTINGS` of which [`fields_from_script`] can make no field, to warn about.
#[must_use]
pub fn undeclared(settings: &Value) -> Vec<String> {
    let made: BTreeSet<String> =
        fields_from_script(settings, &Value::Null).into_iter().map(|field| field.key).collect();
    settings.as_object().map(|map| map.keys().filter(|key| !made.contains(*key)).cloned().collect()).unwrap_or_default()
}

/// What a script sees, and what was passed over on the way.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Effective {
    /// Defaults in the order of declaration, overlaid by stored values; then stored keys that nobody declared.
    pub values: Map<String, Value>,
    /// One line for each stored value that no longer fits its declaration and is ignored. It stays in the file.
    pub notes: Vec<String>,
}

/// Defaults overlaid by what a person stored, key by key: one bad value never takes the others away.
#[must_use]
pub fn effective(fields: &[Field], stored: &Map<String, Value>) -> Effective {
    let mut result = Effective::default();
    for field in fields {
        let value = match stored.get(&field.key) {
            None => field.default_value(),
            Some(value) if field.kind.fits(value) && field.offers(value) => value.clone(),
            Some(value) => {
                let why = match field.kind.fits(value) {
                    true => "one of its options",
                    false => field.kind.expected(),
                };
                result.notes.push(format!(
                    "the stored value of `{}` is ignored: expected {why}, got {}",
                    field.key,
                    type_of(value)
                ));
                field.default_value()
            }
        };
        result.values.insert(field.key.clone(), value);
    }
    for (key, value) in stored {
        if !result.values.contains_key(key) {
            result.values.insert(key.clone(), value.clone());
        }
    }
    result
}

/// The values of a patch as they will be stored; `null` stays `null` and means "back to the default". A plugin without any
/// declared field takes any key.
///
/// # Errors
/// `invalid_arguments` naming key, expected and got, or the keys that exist; `too_large` for a long text or list.
pub fn check_patch(fields: &[Field], patch: &Map<String, Value>) -> Result<Map<String, Value>> {
    patch
        .iter()
        .map(|(key, value)| {
            let checked = match fields.iter().find(|field| field.key == *key) {
                _ if value.is_null() => Value::Null,
                Some(field) => field.coerce(value)?,
                None if fields.is_empty() && valid_key(key) => value.clone(),
                None => {
                    let shown = excerpt(key, 64);
                    let error = Error::invalid(format!("there is no setting `{shown}`"));
                    let keys: Vec<&str> = fields.iter().map(|field| field.key.as_str()).collect();
                    return Err(match keys.is_empty() {
                        true => error.hint("a key is 1 to 64 letters, digits, `_`, `-` or `.`"),
                        false => error.hint(format!("the settings are {}", keys.join(", "))),
                    });
                }
            };
            Ok((key.clone(), checked))
        })
        .collect()
}

fn valid_key(key: &str) -> bool {
    !key.is_empty()
        && key.len() <= 64
        && key.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'))
}

/// `max_rolls` becomes `Max Rolls`.
fn label_of(key: &str) -> String {
    let words = key.split(['_', '-', '.']).filter(|word| !word.is_empty()).map(|word| {
        let mut letters = word.chars();
        letters.next().map(|first| first.to_uppercase().chain(letters).collect::<String>()).unwrap_or_default()
    });
    words.collect::<Vec<_>>().join(" ")
}

fn truth(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Some(true),
        "false" | "no" | "off" | "0" => Some(false),
        _ => None,
    }
}

/// A number as JSON writes it; a whole one outside 64 bits is none.
fn number(text: &str) -> Option<Value> {
    let text = text.trim();
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !unsigned.is_empty() && unsigned.bytes().all(|b| b.is_ascii_digit()) {
        return text.parse::<i64>().ok().map(Value::from);
    }
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    text.parse::<f64>().ok().and_then(Number::from_f64).map(Value::Number)
}

/// A value in an error: short, on one line.
fn brief(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// The type of a value, for reports that must not show it.
fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    fn field(value: Value) -> Field {
        serde_json::from_value(value).unwrap()
    }

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn a_manifest_field_is_read_with_everything_it_can_have() {
        let f = field(json!({
            "key": "mode", "type": "string", "label": "Mode", "default": "calm", "help": "How it speaks.", "widget": "select",
            "options": [{"label": "Calm", "value": "calm"}, "wild"], "placeholder": "..", "tab": "Voice",
            "confirm": {"values": ["wild"], "title": "Sure?", "warnings": ["loud"], "buttonLabel": "Yes"}
        }));
        f.validate().unwrap();
        assert_eq!(f.confirm.as_ref().unwrap().button_label.as_deref(), Some("Yes"));
        assert_eq!(serde_json::from_value::<Field>(serde_json::to_value(&f).unwrap()).unwrap(), f);
        for (word, kind) in [
            ("string", FieldType::String),
            ("text", FieldType::Text),
            ("textarea", FieldType::Text),
            ("number", FieldType::Number),
            ("boolean", FieldType::Boolean),
            ("list", FieldType::List),
        ] {
            assert_eq!(field(json!({"key": "k", "type": word})).kind, kind);
        }
        assert_eq!(field(json!({"key": "k"})).kind, FieldType::String);
    }

    #[test]
    fn bad_declarations_are_refused() {
        for bad in [
            json!({"type": "string"}),
            json!({"key": "k", "type": "colour"}),
            json!({"key": "k", "defualt": 1}),
            json!({"key": 1}),
        ] {
            assert!(serde_json::from_value::<Field>(bad.clone()).is_err(), "{bad}");
        }
        let rows = [
            (json!({"key": ""}), "a key is"),
            (json!({"key": "a b"}), "a key is"),
            (json!({"key": "é"}), "a key is"),
            (json!({"key": "k".repeat(65)}), "a key is"),
            (json!({"key": "k", "default": 1}), "the default 1 is not a text"),
            (json!({"key": "k", "type": "number", "default": "1"}), "is not a number"),
            (json!({"key": "k", "type": "boolean", "default": 0}), "is not true or false"),
            (json!({"key": "k", "type": "list", "default": "a"}), "is not a list"),
            (json!({"key": "k", "type": "list", "default": [{}]}), "is not a list"),
            (json!({"key": "k", "options": [1]}), "the option 1"),
            (json!({"key": "k", "options": ["a"], "default": "b"}), "one of the options"),
            (json!({"key": "k", "widget": "select"}), "needs options"),
            (json!({"key": "k", "type": "boolean", "confirm": {"values": ["x"]}}), "confirmed value"),
        ];
        for (value, word) in rows {
            let e = field(value.clone()).validate().unwrap_err();
            assert!(e.message().contains(word), "{value}: {e}");
        }
        let twice = [field(json!({"key": "k"})), field(json!({"key": "k"}))];
        assert!(validate(&twice).unwrap_err().message().contains("twice"));
        assert!(validate(&twice[..1]).is_ok());
    }

    #[test]
    fn values_are_coerced_or_rejected_with_key_expected_and_got() {
        let options = json!(["a", "b"]);
        let levels = json!([{"label": "One", "value": 1}, {"label": "Two", "value": 2}]);
        // type, options, value, what is stored (or null: rejected)
        let rows = [
            ("boolean", json!([]), json!(true), json!(true)),
            ("boolean", json!([]), json!("true"), json!(true)),
            ("boolean", json!([]), json!(" Yes "), json!(true)),
            ("boolean", json!([]), json!("off"), json!(false)),
            ("boolean", json!([]), json!("0"), json!(false)),
            ("boolean", json!([]), json!("maybe"), json!(null)),
            ("boolean", json!([]), json!(1), json!(null)),
            ("number", json!([]), json!(5), json!(5)),
            ("number", json!([]), json!("5"), json!(5)),
            ("number", json!([]), json!("-5"), json!(-5)),
            ("number", json!([]), json!(" 2.50 "), json!(2.5)),
            ("number", json!([]), json!("1e3"), json!(1000.0)),
            ("number", json!([]), json!("9223372036854775807"), json!(i64::MAX)),
            ("number", json!([]), json!("9223372036854775808"), json!(null)),
            ("number", json!([]), json!("five"), json!(null)),
            ("number", json!([]), json!(""), json!(null)),
            ("number", json!([]), json!("inf"), json!(null)),
            ("number", json!([]), json!("NaN"), json!(null)),
            ("number", json!([]), json!("1e999"), json!(null)),
            ("number", json!([]), json!(true), json!(null)),
            ("number", levels.clone(), json!("2"), json!(2)),
            ("number", levels, json!(3), json!(null)),
            ("string", json!([]), json!("5"), json!("5")),
            ("string", json!([]), json!(""), json!("")),
            ("string", json!([]), json!(5), json!(null)),
            ("string", json!([]), json!(["a"]), json!(null)),
            ("string", options.clone(), json!("a"), json!("a")),
            ("string", options.clone(), json!("A"), json!(null)),
            ("textarea", json!([]), json!("a\nb"), json!("a\nb")),
            ("list", json!([]), json!(["a", 1]), json!(["a", 1])),
            ("list", json!([]), json!("[\"a\", \"b\"]"), json!(["a", "b"])),
            ("list", json!([]), json!("[]"), json!([])),
            ("list", json!([]), json!("a, b"), json!(null)),
            ("list", json!([]), json!([["a"]]), json!(null)),
            ("list", json!([]), json!({"a": 1}), json!(null)),
            ("list", options.clone(), json!(["b", "a"]), json!(["b", "a"])),
            ("list", options, json!(["b", "c"]), json!(null)),
        ];
        for (kind, options, value, stored) in rows {
            let f = field(json!({"key": "k", "type": kind, "options": options}));
            match f.coerce(&value) {
                Ok(got) => assert_eq!(got, stored, "{kind} {value}"),
                Err(e) => {
                    assert!(stored.is_null(), "{kind} {value}: {e}");
                    assert!(e.message().contains("`k`: expected ") && e.message().contains("got "), "{e}");
                }
            }
        }
        assert_eq!(
            field(json!({"key": "k"})).coerce(&json!("x".repeat(MAX_TEXT_BYTES + 1))).unwrap_err().kind(),
            Kind::TooLarge
        );
        assert_eq!(
            field(json!({"key": "k", "type": "list"})).coerce(&json!(vec![1; MAX_LIST + 1])).unwrap_err().kind(),
            Kind::TooLarge
        );
    }

    #[test]
    fn defaults_lie_under_stored_values_key_by_key() {
        let fields = [
            field(json!({"key": "sides", "type": "number", "default": 6})),
            field(json!({"key": "name", "default": "dice"})),
            field(json!({"key": "mode", "options": ["a", "b"], "default": "a"})),
            field(json!({"key": "loud", "type": "boolean"})),
            field(json!({"key": "list", "type": "list"})),
        ];
        let of = |stored: Value| effective(&fields, &map(stored));
        assert_eq!(
            Value::Object(of(json!({})).values),
            json!({"sides": 6, "name": "dice", "mode": "a", "loud": false, "list": []})
        );
        let mixed = of(json!({"sides": "twenty", "name": "d20", "mode": "gone", "side_channel": {"x": 1}}));
        assert_eq!(
            Value::Object(mixed.values),
            json!({"sides": 6, "name": "d20", "mode": "a", "loud": false, "list": [], "side_channel": {"x": 1}})
        );
        assert_eq!(mixed.notes.len(), 2, "{:?}", mixed.notes);
        assert!(mixed.notes[0].contains("`sides`") && !mixed.notes[0].contains("twenty"), "{:?}", mixed.notes);
    }

    #[test]
    fn a_patch_is_checked_whole() {
        let fields = [field(json!({"key": "sides", "type": "number"})), field(json!({"key": "name"}))];
        let patch = |value: Value| check_patch(&fields, &map(value)).map(Value::Object);
        assert_eq!(patch(json!({"sides": "20", "name": null})).unwrap(), json!({"sides": 20, "name": null}));
        assert_eq!(patch(json!({})).unwrap(), json!({}));
        let e = patch(json!({"sides": 20, "naem": "x"})).unwrap_err();
        assert!(e.message().contains("`naem`") && e.hint_text().unwrap().contains("sides, name"), "{e}");
        assert!(check_patch(&[], &map(json!({"any": {"x": 1}}))).is_ok(), "nothing declared, nothing to check");
        assert!(check_patch(&[], &map(json!({"a b": 1}))).is_err());
    }

    #[test]
    fn a_script_declares_settings_by_their_defaults() {
        let settings = json!({"max_rolls": 5, "factor": 1.5, "loud": true, "greeting": "hi", "text": "a\nb", "tags": ["x"], "odd": {}, "none": null, "a b": 1});
        let fields = fields_from_script(&settings, &json!({"loud": "Shout.", "max_rolls": 3}));
        let rows: Vec<_> =
            fields.iter().map(|f| (f.key.as_str(), f.kind.as_str(), f.label.as_str(), f.help.as_str())).collect();
        assert_eq!(
            rows,
            [
                ("max_rolls", "number", "Max Rolls", ""),
                ("factor", "number", "Factor", ""),
                ("loud", "boolean", "Loud", "Shout."),
                ("greeting", "string", "Greeting", ""),
                ("text", "textarea", "Text", ""),
                ("tags", "list", "Tags", ""),
            ]
        );
        validate(&fields).unwrap();
        assert_eq!(undeclared(&settings), ["odd", "none", "a b"]);
        assert!(fields_from_script(&json!([1]), &json!(null)).is_empty());
    }
}

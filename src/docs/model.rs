//! What a host module offers, read from the Rhai module itself: names, signatures in the script's own types, comments.

use crate::script::module::HostModule;
use rhai::Engine;
use serde::Deserialize;
use std::collections::BTreeMap;

/// One host module.
#[derive(Debug, Clone)]
pub struct Module {
    /// What scripts write before `::`.
    pub name: String,
    /// What it is for.
    pub doc: String,
    /// Functions called as `name::function(..)`, in alphabetical order.
    pub functions: Vec<Function>,
    /// Types whose values its functions give, in alphabetical order.
    pub types: Vec<Type>,
}

/// A type of the host.
#[derive(Debug, Clone)]
pub struct Type {
    /// Its name.
    pub name: String,
    /// What it is.
    pub doc: String,
    /// Called as `value.method(..)`, in alphabetical order.
    pub methods: Vec<Function>,
    /// Read as `value.property`, in alphabetical order.
    pub properties: Vec<Function>,
}

/// A function with all its overloads.
#[derive(Debug, Clone)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// The type of the value before the dot, for methods and properties.
    pub receiver: Option<String>,
    /// One for each overload, the shortest first.
    pub signatures: Vec<Signature>,
    /// Its comment as Markdown, example included.
    pub doc: String,
}

/// Parameters and result of one overload.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Signature {
    /// Names and types, without the value before the dot.
    pub params: Vec<(String, Kind)>,
    /// The result.
    pub result: Kind,
}

/// A type as scripts know it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Nothing.
    Unit,
    /// Any value.
    Any,
    /// Text.
    Text,
    /// A 64-bit integer.
    Integer,
    /// A 64-bit float.
    Float,
    /// True or false.
    Bool,
    /// An array.
    Array,
    /// A map.
    Map,
    /// Bytes.
    Blob,
    /// A function or closure.
    Function,
    /// A type of the host, by name.
    Host(String),
}

impl Kind {
    /// From the text of a Rust type, as the macro kept it.
    fn of(rust: &str) -> Kind {
        let mut text: String = rust.chars().filter(|c| !c.is_whitespace()).collect();
        for prefix in ["&mut", "&"] {
            text = text.strip_prefix(prefix).unwrap_or(&text).to_owned();
        }
        for wrapper in ["Res<", "Result<", "RhaiResultOf<"] {
            if let Some(inner) = text.strip_prefix(wrapper) {
                let inner = inner.strip_suffix('>').unwrap_or(inner);
                return Kind::of(inner.split_once(",Box<").map_or(inner, |(ok, _)| ok));
            }
        }
        match text.rsplit("::").next().unwrap_or_default() {
            "" | "()" => Kind::Unit,
            "Dynamic" | "RhaiResult" | "?" | "_" => Kind::Any,
            "str" | "String" | "ImmutableString" => Kind::Text,
            "i64" | "INT" => Kind::Integer,
            "f64" | "FLOAT" => Kind::Float,
            "bool" => Kind::Bool,
            "Array" => Kind::Array,
            "Map" => Kind::Map,
            "Blob" => Kind::Blob,
            "FnPtr" => Kind::Function,
            other => Kind::Host(other.to_owned()),
        }
    }

    /// The word of the documentation.
    #[must_use]
    pub fn word(&self) -> &str {
        match self {
            Kind::Unit => "()",
            Kind::Any => "any",
            Kind::Text => "text",
            Kind::Integer => "integer",
            Kind::Float => "float",
            Kind::Bool => "bool",
            Kind::Array => "array",
            Kind::Map => "map",
            Kind::Blob => "blob",
            Kind::Function => "function",
            Kind::Host(name) => name,
        }
    }

    /// The word of definition files.
    #[must_use]
    pub fn definition(&self) -> &str {
        match self {
            Kind::Any => "?",
            Kind::Text => "String",
            Kind::Integer => "int",
            Kind::Array => "Array",
            Kind::Map => "Map",
            Kind::Blob => "Blob",
            Kind::Function => "FnPtr",
            Kind::Unit | Kind::Float | Kind::Bool | Kind::Host(_) => self.word(),
        }
    }
}

impl Function {
    /// The runnable examples in its comment.
    #[must_use]
    pub fn examples(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut open: Option<String> = None;
        for line in self.doc.lines() {
            match (&mut open, line.trim()) {
                (None, "```rhai") => open = Some(String::new()),
                (Some(_), "```") => found.extend(open.take()),
                (Some(text), _) => {
                    text.push_str(line);
                    text.push('\n');
                }
                (None, _) => {}
            }
        }
        found
    }
}

/// Where a function of the Rhai module belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Module,
    Method,
    Property,
}

/// The JSON that Rhai renders of a module, as far as it is read here.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Raw {
    custom_types: Vec<RawType>,
    functions: Vec<RawFunction>,
    modules: BTreeMap<String, Raw>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawType {
    display_name: String,
    doc_comments: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawFunction {
    access: String,
    namespace: String,
    name: String,
    params: Vec<RawParam>,
    return_type: String,
    doc_comments: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RawParam {
    name: String,
    r#type: String,
}

impl Raw {
    fn of(module: &HostModule) -> Raw {
        let mut engine = Engine::new_raw();
        engine.register_static_module(module.name(), module.build().into());
        let text = engine.definitions().include_standard_packages(false).json().unwrap_or_default();
        let mut raw: Raw = serde_json::from_str(&text).unwrap_or_default();
        raw.modules.remove(module.name()).unwrap_or_default()
    }
}

impl Module {
    /// Reads a module.
    #[must_use]
    pub fn of(module: &HostModule) -> Module {
        let raw = Raw::of(module);
        let new_type = |name: String, doc: String| Type { name, doc, methods: Vec::new(), properties: Vec::new() };
        let mut types: BTreeMap<String, Type> = raw
            .custom_types
            .into_iter()
            .map(|raw| (raw.display_name.clone(), new_type(raw.display_name, comment(&raw.doc_comments))))
            .collect();
        let found = gathered(raw.functions);
        let mut functions = Vec::new();
        for ((place, receiver, _), mut function) in found {
            function.signatures.sort_by_key(|s| (s.params.len(), s.clone()));
            function.signatures.dedup();
            let Some(receiver) = receiver else {
                functions.push(function);
                continue;
            };
            let owner = types
                .entry(receiver.clone())
                .or_insert_with(|| new_type(receiver.clone(), format!("The methods of `{receiver}`.")));
            if place == Place::Property { owner.properties.push(function) } else { owner.methods.push(function) }
        }
        Module {
            name: module.name().to_owned(),
            doc: module.doc().to_owned(),
            functions,
            types: types.into_values().collect(),
        }
    }

    /// Functions, methods and properties.
    pub fn every_function(&self) -> impl Iterator<Item = &Function> {
        let of_types = self.types.iter().flat_map(|t| t.methods.iter().chain(&t.properties));
        self.functions.iter().chain(of_types)
    }
}

/// What the language itself has, without operators: whether it is a property, and the function.
pub(super) fn language(engine: &Engine) -> Vec<(bool, Function)> {
    let text = engine.definitions().include_standard_packages(true).json().unwrap_or_default();
    let raw: Raw = serde_json::from_str(&text).unwrap_or_default();
    gathered(raw.functions)
        .into_iter()
        .filter(|((_, _, name), _)| name.starts_with(|c: char| c.is_ascii_alphabetic()) && !name.contains('$'))
        .map(|((place, ..), mut function)| {
            function.signatures.sort_by_key(|s| (s.params.len(), s.clone()));
            function.signatures.dedup();
            (place == Place::Property, function)
        })
        .collect()
}

type Gathered = BTreeMap<(Place, Option<String>, String), Function>;

/// Functions by where they belong, the overloads of each together.
fn gathered(raw: Vec<RawFunction>) -> Gathered {
    let mut found = Gathered::new();
    for raw in raw.into_iter().filter(|raw| raw.access != "private") {
        let doc = comment(&raw.doc_comments);
        let (place, receiver, name, signature) = placed(raw);
        let function = found.entry((place, receiver.clone(), name.clone())).or_insert_with(|| Function {
            name,
            receiver,
            signatures: Vec::new(),
            doc: String::new(),
        });
        // Overloads share one comment; the fullest is it.
        if doc.len() > function.doc.len() {
            function.doc = doc;
        }
        function.signatures.push(signature);
    }
    found
}

fn placed(raw: RawFunction) -> (Place, Option<String>, String, Signature) {
    let result = Kind::of(&raw.return_type);
    let mut params: Vec<(String, Kind)> = raw
        .params
        .into_iter()
        .map(|param| (param.name.trim_start_matches("mut ").to_owned(), Kind::of(&param.r#type)))
        .collect();
    let (mut place, name) = match raw.name.strip_prefix("get$") {
        Some(property) => (Place::Property, property.to_owned()),
        None if raw.namespace == "global" => (Place::Method, raw.name),
        None => (Place::Module, raw.name),
    };
    if params.is_empty() {
        place = Place::Module;
    }
    let receiver = (place != Place::Module).then(|| params.remove(0).1.word().to_owned());
    (place, receiver, name, Signature { params, result })
}

/// The text of doc comments, markers and common indent removed.
fn comment(lines: &[String]) -> String {
    let mut out = String::new();
    for block in lines {
        for line in block.lines() {
            let line = line.trim_start();
            let line = line.strip_prefix("///").unwrap_or(line);
            out.push_str(line.strip_prefix(' ').unwrap_or(line).trim_end());
            out.push('\n');
        }
    }
    out.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rust_types_read_as_script_types() {
        let table = [
            ("& str", "text", "String"),
            ("&mut TextBuilder", "TextBuilder", "TextBuilder"),
            ("Res < Dynamic >", "any", "?"),
            ("Res<()>", "()", "()"),
            ("", "()", "()"),
            ("i64", "integer", "int"),
            ("Res < f64 >", "float", "float"),
            ("Result < Map , Box < EvalAltResult > >", "map", "Map"),
            ("FnPtr", "function", "FnPtr"),
            ("super :: Response", "Response", "Response"),
        ];
        for (rust, word, definition) in table {
            assert_eq!((Kind::of(rust).word(), Kind::of(rust).definition()), (word, definition), "{rust}");
        }
    }
}

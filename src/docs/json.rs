//! The reference as one JSON document, for editors and completion.

use super::model::{self, Function, Module};
use crate::script::lint::RESERVED_WORDS;
use rhai::Engine;
use schemars::JsonSchema;
use serde::Serialize;

/// The words that begin or hold together a piece of a script.
const KEYWORDS: [&str; 28] = [
    "as", "break", "catch", "const", "continue", "do", "else", "export", "false", "fn", "for", "if", "import", "in",
    "let", "loop", "private", "return", "switch", "this", "throw", "true", "try", "until", "while", "call", "curry",
    "type_of",
];

/// Everything that a script can call.
#[derive(Serialize, JsonSchema)]
pub struct Reference {
    /// The form of this document.
    version: u32,
    /// What scripts call as `module::function(..)`.
    modules: Vec<ModulePage>,
    /// What the language itself has.
    language: Language,
}

/// The language itself.
#[derive(Serialize, JsonSchema)]
struct Language {
    /// Words with a meaning.
    keywords: Vec<&'static str>,
    /// Words that are kept for later, and cannot name anything.
    reserved: Vec<&'static str>,
    /// Functions of texts, lists, maps, numbers and the rest, also called as `value.function(..)`.
    functions: Vec<BuiltIn>,
}

/// A function of the language.
#[derive(Serialize, JsonSchema)]
struct BuiltIn {
    /// The type of its first parameter, which is the value before the dot; nothing where it takes none.
    receiver: Option<String>,
    /// Whether it is read without brackets, as `value.property`.
    property: bool,
    #[serde(flatten)]
    function: FunctionPage,
}

#[derive(Serialize, JsonSchema)]
struct Document {
    version: u32,
    modules: Vec<ModulePage>,
}

/// A host module.
#[derive(Serialize, JsonSchema)]
struct ModulePage {
    /// What scripts write before `::`.
    name: String,
    /// What it is for.
    doc: String,
    /// Its functions, in alphabetical order.
    functions: Vec<FunctionPage>,
    /// Types whose values its functions give.
    types: Vec<TypePage>,
}

/// A type of the host.
#[derive(Serialize, JsonSchema)]
struct TypePage {
    /// Its name.
    name: String,
    /// What it is.
    doc: String,
    /// Called as `value.method(..)`.
    methods: Vec<FunctionPage>,
    /// Read as `value.property`.
    properties: Vec<FunctionPage>,
}

/// A function with all its overloads.
#[derive(Serialize, JsonSchema)]
struct FunctionPage {
    /// Its name.
    name: String,
    /// Its comment as Markdown.
    doc: String,
    /// One for each overload, the shortest first.
    signatures: Vec<SignaturePage>,
}

/// Parameters and result of one overload.
#[derive(Serialize, JsonSchema)]
struct SignaturePage {
    /// Without the value before the dot.
    params: Vec<ParamPage>,
    /// The type of the result.
    returns: String,
}

/// A parameter.
#[derive(Serialize, JsonSchema)]
struct ParamPage {
    /// Its name.
    name: String,
    /// Its type, as scripts know it.
    r#type: String,
}

/// All modules.
pub fn document(modules: &[Module]) -> String {
    let document = Document { version: 1, modules: modules.iter().map(module).collect() };
    // A value that was just built from texts can always be written.
    let mut text = serde_json::to_string_pretty(&document).unwrap_or_default();
    text.push('\n');
    text
}

/// All modules, and the language itself.
pub fn reference(engine: &Engine, modules: &[Module]) -> Reference {
    let functions = model::language(engine)
        .iter()
        .map(|(property, function)| BuiltIn {
            receiver: function.receiver.clone(),
            property: *property,
            function: page(function),
        })
        .collect();
    let keywords = KEYWORDS.to_vec();
    let reserved = RESERVED_WORDS.iter().copied().filter(|word| !keywords.contains(word)).collect();
    Reference {
        version: 1,
        modules: modules.iter().map(module).collect(),
        language: Language { keywords, reserved, functions },
    }
}

fn module(module: &Module) -> ModulePage {
    let pages = |functions: &[Function]| functions.iter().map(page).collect();
    ModulePage {
        name: module.name.clone(),
        doc: module.doc.clone(),
        functions: pages(&module.functions),
        types: module
            .types
            .iter()
            .map(|kind| TypePage {
                name: kind.name.clone(),
                doc: kind.doc.clone(),
                methods: pages(&kind.methods),
                properties: pages(&kind.properties),
            })
            .collect(),
    }
}

fn page(function: &Function) -> FunctionPage {
    let signatures = function.signatures.iter().map(|signature| SignaturePage {
        params: signature
            .params
            .iter()
            .map(|(name, kind)| ParamPage { name: name.clone(), r#type: kind.word().to_owned() })
            .collect(),
        returns: signature.result.word().to_owned(),
    });
    FunctionPage { name: function.name.clone(), doc: function.doc.clone(), signatures: signatures.collect() }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn every_keyword_is_a_word_that_names_nothing() {
        let engine = crate::script::engine::build(&crate::host::all());
        for word in KEYWORDS {
            assert!(engine.compile(format!("fn {word}() {{}}")).is_err() || word == "this", "{word}");
        }
    }

    #[test]
    fn the_language_s_own_functions_are_there_with_their_comments_and_without_operators() {
        let engine = crate::script::engine::build(&crate::host::all());
        let reference = reference(&engine, &[]);
        let find = |receiver: &str, name: &str| {
            let mut all = reference.language.functions.iter();
            all.find(|f| f.receiver.as_deref() == Some(receiver) && f.function.name == name)
        };
        for (receiver, name) in [("text", "split"), ("array", "push"), ("map", "keys"), ("text", "contains")] {
            let found = find(receiver, name).unwrap_or_else(|| panic!("{receiver}.{name}"));
            assert!(!found.function.doc.is_empty() && !found.function.signatures.is_empty(), "{receiver}.{name}");
        }
        for f in &reference.language.functions {
            assert!(f.function.name.starts_with(|c: char| c.is_ascii_alphabetic()), "{}", f.function.name);
        }
    }
}

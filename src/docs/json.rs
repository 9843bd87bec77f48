//! The reference as one JSON document, for editors and completion.

use super::model::{Function, Module};
use serde_json::{Value, json};

/// All modules.
pub fn document(modules: &[Module]) -> String {
    let document = json!({ "version": 1, "modules": modules.iter().map(module).collect::<Vec<_>>() });
    // A value that was just built from texts can always be written.
    let mut text = serde_json::to_string_pretty(&document).unwrap_or_default();
    text.push('\n');
    text
}

fn module(module: &Module) -> Value {
    let types: Vec<Value> = module
        .types
        .iter()
        .map(|kind| {
            json!({
                "name": kind.name,
                "doc": kind.doc,
                "methods": functions(&kind.methods),
                "properties": functions(&kind.properties),
            })
        })
        .collect();
    json!({ "name": module.name, "doc": module.doc, "functions": functions(&module.functions), "types": types })
}

fn functions(functions: &[Function]) -> Vec<Value> {
    functions
        .iter()
        .map(|function| {
            let signatures: Vec<Value> = function
                .signatures
                .iter()
                .map(|signature| {
                    let params: Vec<Value> = signature
                        .params
                        .iter()
                        .map(|(name, kind)| json!({ "name": name, "type": kind.word() }))
                        .collect();
                    json!({ "params": params, "returns": signature.result.word() })
                })
                .collect();
            json!({ "name": function.name, "doc": function.doc, "signatures": signatures })
        })
        .collect()
}

//! The reference as definition files, in Rhai's own notation.

use super::model::{Function, Module, Signature};
use std::fmt::Write;

/// One module's file.
pub fn file(module: &Module) -> String {
    let mut out = format!("/// {}\nmodule {};\n", module.doc.replace('\n', "\n/// "), module.name);
    for function in &module.functions {
        for signature in &function.signatures {
            write(&mut out, "fn", function, None, signature);
        }
    }
    for kind in &module.types {
        for property in &kind.properties {
            for signature in &property.signatures {
                write(&mut out, "fn get", property, Some(&kind.name), signature);
            }
        }
        for method in &kind.methods {
            for signature in &method.signatures {
                write(&mut out, "fn", method, Some(&kind.name), signature);
            }
        }
    }
    out
}

fn write(out: &mut String, word: &str, function: &Function, receiver: Option<&str>, signature: &Signature) {
    out.push('\n');
    for line in function.doc.lines() {
        let _ = writeln!(out, "{}", format!("/// {line}").trim_end());
    }
    let receiver = receiver.map(|name| format!("value: {name}"));
    let params = signature.params.iter().map(|(name, kind)| format!("{name}: {}", kind.definition()));
    let params: Vec<String> = receiver.into_iter().chain(params).collect();
    let _ = writeln!(out, "{word} {}({}) -> {};", function.name, params.join(", "), signature.result.definition());
}

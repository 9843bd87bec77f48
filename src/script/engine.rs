//! The one Rhai engine: every limit set, every amplifying native checked, nothing ambient.
//! Built once and shared; who calls travels in the tag, never in the engine.

use super::control::{self, Stop};
use super::module::HostModule;
use super::resolver::Resolver;
use rhai::packages::{Package, StandardPackage};
use rhai::{Dynamic, Engine, LexError, OptimizationLevel, Token};

/// Depth of function calls, shared with nested tool calls.
pub const CALL_DEPTH: usize = 64;
/// Depth of expressions at the top level of a file.
pub const EXPRESSION_DEPTH: usize = 128;
/// Depth of expressions inside functions.
pub const FUNCTION_EXPRESSION_DEPTH: usize = 64;

/// The name of the hidden native that hands a file's constants to the loader.
pub(super) const CONSTANTS: &str = "__constants";

/// Builds the engine with these host modules.
#[must_use]
pub fn build(modules: &[HostModule]) -> Engine {
    let mut engine = Engine::new_raw();
    engine.register_global_module(StandardPackage::new().as_shared_module());
    engine.set_max_call_levels(CALL_DEPTH);
    engine.set_max_expr_depths(EXPRESSION_DEPTH, FUNCTION_EXPRESSION_DEPTH);
    // Operations are counted in the hook, per call and per plugin. Any size limit makes growth quadratic, so the
    // memory budget guards instead.
    engine.set_max_operations(0);
    engine.set_max_string_size(0);
    engine.set_max_array_size(0);
    engine.set_max_map_size(0);
    engine.set_max_modules(1000);
    engine.set_max_functions(20_000);
    engine.set_max_variables(10_000);
    engine.set_strict_variables(false);
    engine.set_fail_on_invalid_map_property(false);
    engine.set_fast_operators(true);
    // Folding constants would run the script's arithmetic inside the compiler, where no budget reaches: forty lines of
    // `const B = A + A;` ended the process.
    engine.set_optimization_level(OptimizationLevel::None);
    engine.disable_symbol("eval");
    engine.set_module_resolver(Resolver);
    engine.on_print(|_| {});
    engine.on_debug(|_, _, _| {});
    #[allow(deprecated)] // These hooks are marked volatile, not deprecated; the version is pinned.
    {
        // Parsing is quadratic in places (names in scope, keys of one map), so the deadline has to reach it too.
        engine.on_parse_token(|token, _, _| match token {
            // (The one lexical error that the parser expects everywhere; the compiler's caller tells the stop instead.)
            _ if control::is_stopped() => Token::LexError(LexError::UnterminatedString.into()),
            // A whole number beyond 64 bits would become a float without a word.
            Token::FloatConstant(number) if number.1.bytes().all(|b| b.is_ascii_digit()) => {
                Token::LexError(LexError::MalformedNumber(number.1.to_string()).into())
            }
            token => token,
        });
        engine.on_progress(|_| match control::tick() {
            Stop::No => None,
            why => Some(Dynamic::from_int(why as i64)),
        });
        engine.on_var(|name, index, context| {
            if index != 0 {
                return Ok(None);
            }
            // A plain top-level `const` is readable in every function of its file.
            if let Some(constants) = &context.global_runtime_state().constants
                && let Ok(constants) = constants.read()
                && let Some(value) = constants.get(name)
            {
                return Ok((!context.scope().contains(name)).then(|| value.clone()));
            }
            Ok(None)
        });
    }
    super::lint::prepare(&mut engine);
    super::language::register(&mut engine);
    for module in modules {
        engine.register_static_module(module.name(), module.build().into());
    }
    engine
}

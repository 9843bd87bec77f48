//! Exact arithmetic and units: an expression in, its exact and its decimal text out. No variables outlive a call.
//! Expressions come from strangers, so each runs on a thread of its own that the caller can leave behind.

mod decimal;

use crate::base::error::{Error, Kind, Result};
use regex::Regex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Condvar, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Longest expression in bytes.
pub const MAX_EXPRESSION: usize = 2_000;
/// Longest result in bytes.
pub const MAX_RESULT: usize = 20_000;
/// Most words, numbers and signs of one expression.
const MAX_TOKENS: usize = 500;
/// Wall clock of one expression.
const LIMIT: Duration = Duration::from_secs(5);
/// Expressions at work at once, those included that were left behind.
const AT_ONCE: usize = 4;
/// Time between two looks at the interrupt.
const PAUSE: Duration = Duration::from_millis(5);
/// Stack of the thread: five hundred signs in a row need 6 MiB of it without optimisation.
const STACK: usize = 64 << 20;
/// Significant digits that an irrational result has right.
const INEXACT_DIGITS: u8 = 15;
/// Significant digits to which pi is known.
const PI_DIGITS: u8 = 36;
/// Beginning of the names that stand for what was between parentheses.
const HELD: &str = "zqzq";

/// How a result is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Significant digits of the decimal text, 1 to 100.
    pub precision: u8,
    /// Whether the exact text is a fraction even where a decimal number is exact.
    pub rational: bool,
}

impl Default for Options {
    /// 34 digits, fractions only where they are needed.
    fn default() -> Self {
        Options { precision: 34, rational: false }
    }
}

/// A result in both forms, units included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evaluated {
    /// The exact value, such as `1/3`, `0.3` or `5000 m`; `None` where it is irrational and only near to the decimal text.
    pub exact: Option<String>,
    /// The value rounded to the asked digits, whole numbers in full; at most 15 digits where `exact` is `None`.
    pub decimal: String,
}

/// Works out `expression`, for example `2^200`, `1/3 + 1/6` or `60 mph to km/h`.
///
/// # Errors
/// `invalid_arguments` for what is no expression or has no value, `too_large` beyond the limits here, `timeout` once
/// `interrupt` answers `true` or after five seconds, `rate_limited` while too many are at work.
pub fn evaluate(expression: &str, options: Options, interrupt: &dyn Fn() -> bool) -> Result<Evaluated> {
    if !(1..=100).contains(&options.precision) {
        return Err(Error::invalid(format!("a precision of {} digits", options.precision)).hint("give 1 to 100"));
    }
    let steps = prepare(expression)?;
    at_work(interrupt, move |stop| work(&steps, options, stop))
}

/// Works out `expression` in `unit`, for example `5 km` in `miles`.
///
/// # Errors
/// As [`evaluate`]; `invalid_arguments` where the units measure different things.
pub fn convert(expression: &str, unit: &str, options: Options, interrupt: &dyn Fn() -> bool) -> Result<Evaluated> {
    if unit.trim().is_empty() {
        return Err(Error::invalid("no unit is given").hint("such as `km/h`, `lb` or `C`"));
    }
    if expression.contains([';', '=']) || unit.contains([';', '=', '(', ')']) {
        return Err(Error::invalid("a conversion takes one value and one unit"));
    }
    evaluate(&format!("({expression}) to {unit}"), options, interrupt)
}

/// One statement to run, and the name that keeps its value.
struct Step {
    keep: Option<String>,
    text: String,
}

/// Checks an expression and takes it apart: every pair of parentheses becomes a step of its own, since the parser's
/// time doubles with every level of nesting.
fn prepare(expression: &str) -> Result<Vec<Step>> {
    static DICE: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new("(?:^|[^A-Za-z_#0-9.])[0-9.,_]*d[0-9]").expect("the pattern is a constant that a test compiles")
    });
    static TOKEN: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"[0-9A-Za-z_.]+|[^\s0-9A-Za-z_.]").expect("the pattern is a constant that a test compiles")
    });
    if expression.len() > MAX_EXPRESSION {
        return Err(Error::new(Kind::TooLarge, format!("the expression is longer than {MAX_EXPRESSION} bytes")));
    }
    if expression.trim().is_empty() {
        return Err(Error::invalid("the expression is empty").hint("such as `2 + 2` or `5 km to miles`"));
    }
    if TOKEN.find_iter(expression).count() > MAX_TOKENS {
        return Err(Error::new(Kind::TooLarge, format!("the expression has more than {MAX_TOKENS} parts"))
            .hint("work it out in several steps"));
    }
    let words: Vec<&str> = TOKEN.find_iter(expression).map(|m| m.as_str()).collect();
    // Functions could call themselves without end, dice grow without bound, the rest runs where nothing stops it.
    if expression.contains(['\\', ':', 'λ', '@', '\n', '\r']) || expression.contains("=>") {
        return Err(Error::invalid("the expression holds a sign that is not used here")
            .hint("functions cannot be defined; write the formula itself"));
    }
    if expression.contains("<<") {
        return Err(Error::invalid("`<<` is not used here").hint("multiply with a power: `3 * 2^4`"));
    }
    if DICE.is_match(expression) || words.iter().any(|w| matches!(*w, "roll" | "sample")) {
        return Err(Error::invalid("dice are not used here").hint("for chance there is the random module"));
    }
    // They go through floating-point numbers, and what comes out calls itself exact.
    if let Some(word) = words.iter().find(|w| matches!(**w, "floor" | "ceil" | "round")) {
        return Err(Error::invalid(format!("`{word}` is not exact, so it is not used here"))
            .hint("ask for fewer digits, or subtract the remainder: `17 - 17 mod 5`"));
    }
    if words.contains(&"words") {
        return Err(Error::invalid("numbers are not written out in words here"));
    }
    if expression.contains(HELD) {
        return Err(Error::invalid(format!("the name `{HELD}` is taken")));
    }
    let mut steps: Vec<Step> = Vec::new();
    let mut open: Vec<String> = vec![String::new()];
    for c in expression.chars() {
        match c {
            '(' => open.push(String::new()),
            ')' => {
                let inner = open.pop().unwrap_or_default();
                let Some(outer) = open.last_mut() else {
                    return Err(Error::invalid("a parenthesis is closed that was not opened"));
                };
                if inner.trim().is_empty() || inner.contains(';') {
                    return Err(Error::invalid("between two parentheses stands one value"));
                }
                let name = format!("{HELD}{}", letters(steps.len()));
                outer.push_str(&format!("({name})"));
                steps.push(Step { keep: Some(name), text: inner });
            }
            // A statement of its own, which runs before the parentheses of the next one.
            ';' if open.len() == 1 => {
                let text = std::mem::take(open.last_mut().expect("its length was just seen"));
                steps.push(Step { keep: None, text });
            }
            other => open.last_mut().expect("the outermost text is never closed").push(other),
        }
    }
    match (open.pop(), open.is_empty()) {
        (Some(text), true) => steps.push(Step { keep: None, text }),
        _ => return Err(Error::invalid("a parenthesis is not closed")),
    }
    Ok(steps)
}

/// A number as letters: names hold no digits.
fn letters(mut number: usize) -> String {
    let mut name = String::new();
    loop {
        // 26 letters; the remainder is below 26.
        name.push(char::from(b'a' + u8::try_from(number % 26).unwrap_or(0)));
        number /= 26;
        if number == 0 {
            return name;
        }
    }
}

/// Raised by the caller, read by the arithmetic.
struct Flag(Arc<AtomicBool>);

impl fend_core::Interrupt for Flag {
    fn should_interrupt(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// One of the places at work; given back when the thread really ends.
struct Place;

/// How many places are taken, and the bell that rings when one is given back.
static TAKEN: (Mutex<usize>, Condvar) = (Mutex::new(0), Condvar::new());

impl Place {
    /// Waits for a place until `ends`, asking `interrupt` now and then.
    fn take(interrupt: &dyn Fn() -> bool, ends: Instant) -> Result<Place> {
        let (taken, bell) = &TAKEN;
        let mut count = taken.lock().unwrap_or_else(PoisonError::into_inner);
        while *count >= AT_ONCE {
            if Instant::now() >= ends {
                return Err(
                    Error::new(Kind::RateLimited, "too many calculations are at work").hint("try again in a moment")
                );
            }
            if interrupt() {
                return Err(interrupted());
            }
            count = bell.wait_timeout(count, PAUSE).unwrap_or_else(PoisonError::into_inner).0;
        }
        *count += 1;
        Ok(Place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let (taken, bell) = &TAKEN;
        *taken.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        bell.notify_one();
    }
}

/// Runs `job` on a thread of its own and waits for it, until `interrupt` says so or its time is over.
fn at_work(
    interrupt: &dyn Fn() -> bool,
    job: impl FnOnce(&Flag) -> Result<Evaluated> + Send + 'static,
) -> Result<Evaluated> {
    let place = Place::take(interrupt, Instant::now() + LIMIT)?;
    let ends = Instant::now() + LIMIT;
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Flag(Arc::clone(&stop));
    let (done, result) = mpsc::sync_channel(1);
    std::thread::Builder::new()
        .name("math".to_owned())
        .stack_size(STACK)
        .spawn(move || {
            let _place = place;
            // Nobody listens any more where the caller left.
            let _ = done.send(job(&flag));
        })
        .map_err(|e| Error::internal(format!("no thread for a calculation: {e}")))?;
    loop {
        match result.recv_timeout(PAUSE) {
            Ok(outcome) => return outcome,
            Err(RecvTimeoutError::Timeout) if interrupt() => {
                stop.store(true, Ordering::Relaxed);
                return Err(interrupted());
            }
            Err(RecvTimeoutError::Timeout) if Instant::now() >= ends => {
                stop.store(true, Ordering::Relaxed);
                return Err(Error::new(
                    Kind::Timeout,
                    format!("the calculation takes longer than {} s", LIMIT.as_secs()),
                )
                .with_retryable(false)
                .hint("use smaller numbers"));
            }
            Err(RecvTimeoutError::Timeout) => {}
            // The thread ended without an answer: the library panicked, on input it does not know.
            Err(RecvTimeoutError::Disconnected) => return Err(Error::invalid("the expression cannot be worked out")),
        }
    }
}

fn interrupted() -> Error {
    Error::new(Kind::Timeout, "the calculation was stopped")
}

fn work(steps: &[Step], options: Options, flag: &Flag) -> Result<Evaluated> {
    // Fresh for every call: no clock, no randomness, no exchange rates, no variables of others.
    let mut context = fend_core::Context::new();
    let mut run = |text: &str| {
        fend_core::evaluate_with_interrupt(text, &mut context, flag)
            .map(|result| result.get_main_result().trim().to_owned())
            .map_err(|message| explain(&message))
    };
    let Some((last, before)) = steps.split_last() else {
        return Err(Error::invalid("the expression is empty"));
    };
    for step in before {
        // The zero keeps the value from being written out.
        match &step.keep {
            Some(name) => run(&format!("{name} = {}; 0", step.text))?,
            None => run(&format!("{}; 0", step.text))?,
        };
    }
    let plain = run(&last.text)?;
    // A name that cannot be followed by anything, such as a text, a date or a truth value, is its own result.
    let Ok(exact) = run("_ to exact") else {
        return checked(Evaluated { exact: Some(plain.clone()), decimal: plain });
    };
    let irrational = exact.starts_with("approx.");
    let digits = match (irrational, exact.contains('π')) {
        (true, _) => options.precision.min(INEXACT_DIGITS),
        (false, true) => options.precision.min(PI_DIGITS),
        (false, false) => options.precision,
    };
    let exact = if irrational {
        None
    } else if options.rational || has_fraction(&exact) {
        // `7/3` rather than `2 1/3`, which reads as two numbers.
        Some(run("_ to fraction")?)
    } else {
        Some(exact)
    };
    let rounded = match &exact {
        // A whole number is not rounded.
        Some(exact) if !exact.contains(['.', '/', 'π']) => Some(exact.clone()),
        Some(exact) if !exact.contains('π') => round(exact, usize::from(digits), &mut run)?,
        _ => None,
    };
    let decimal = match rounded {
        Some(rounded) => rounded,
        None => approximate(usize::from(digits), &mut run)?,
    };
    checked(Evaluated { exact, decimal })
}

/// An exact decimal number or fraction, rounded; `None` where the text is neither.
fn round(exact: &str, digits: usize, run: &mut impl FnMut(&str) -> Result<String>) -> Result<Option<String>> {
    let Some(number) = decimal::read(exact) else { return Ok(None) };
    let Some(divisor) = number.divisor else { return Ok(Some(decimal::round(&number, digits))) };
    let shift = decimal::shift(number.whole, divisor, digits);
    let dividend = format!("{} * 10^{shift}", number.whole);
    let quotient = run(&format!("({dividend} - (({dividend}) mod {divisor})) / {divisor}"))?;
    let (whole, fraction) = decimal::unshift(&quotient, shift);
    let quotient = decimal::Number { whole: &whole, fraction: &fraction, divisor: None, ..number };
    Ok(Some(decimal::round(&quotient, digits)))
}

/// The last value in decimals, where there is no exact text to round: some digits more than asked for, then rounded.
fn approximate(digits: usize, run: &mut impl FnMut(&str) -> Result<String>) -> Result<String> {
    let mut to = |digits: usize| -> Result<String> {
        let text = run(&format!("_ to {digits} sf"))?;
        Ok(text.strip_prefix("approx. ").unwrap_or(&text).to_owned())
    };
    let (shorter, longer) = (to(digits + 2)?, to(digits + 3)?);
    match decimal::read(decimal::right(&shorter, &longer, digits + 3)) {
        Some(number) => Ok(decimal::round(&number, digits)),
        // Complex numbers and those in other bases are written as the crate writes them.
        None => to(digits),
    }
}

/// Whether a text holds a fraction of numbers, other than the bar in a unit such as `km / h`.
fn has_fraction(text: &str) -> bool {
    text.as_bytes().windows(3).any(|w| w[1] == b'/' && w[0] != b' ' && w[2].is_ascii_digit())
}

fn checked(result: Evaluated) -> Result<Evaluated> {
    if result.decimal.len() > MAX_RESULT || result.exact.as_ref().is_some_and(|exact| exact.len() > MAX_RESULT) {
        return Err(Error::new(Kind::TooLarge, format!("the result is longer than {MAX_RESULT} characters"))
            .hint("ask for a logarithm or a remainder of it"));
    }
    Ok(result)
}

fn explain(message: &str) -> Error {
    if message == "interrupted" {
        return interrupted();
    }
    let message: String = message.chars().filter(|c| !c.is_control()).take(300).collect();
    Error::invalid(format!("the expression has no value: {message}"))
        .hint("such as `2^10`, `sqrt(2)`, `15% of 80` or `5 km to miles`")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn never() -> bool {
        false
    }

    fn exact(expression: &str) -> (Option<String>, String) {
        let result = evaluate(expression, Options::default(), &never);
        let result = result.unwrap_or_else(|e| panic!("{expression}: {e}"));
        (result.exact, result.decimal)
    }

    #[test]
    fn rational_results_are_exact_and_their_decimals_have_the_asked_digits() {
        for (expression, want, decimal) in [
            ("0.1 + 0.2", "0.3", "0.3"),
            ("1/3", "1/3", "0.3333333333333333333333333333333333"),
            ("2/3", "2/3", "0.6666666666666666666666666666666667"),
            ("1/3 + 1/6", "0.5", "0.5"),
            ("7/3", "7/3", "2.333333333333333333333333333333333"),
            ("-7/3", "-7/3", "-2.333333333333333333333333333333333"),
            ("(1/3)*3", "1", "1"),
            ("2^10", "1024", "1024"),
            ("2**10", "1024", "1024"),
            ("10/4", "2.5", "2.5"),
            ("5!", "120", "120"),
            ("12 mod 5", "2", "2"),
            ("sqrt(16)", "4", "4"),
            ("-(3 + 4) * 2", "-14", "-14"),
            ("2(3 + 4)", "14", "14"),
            ("((((((((((((((((((((1))))))))))))))))))))", "1", "1"),
            ("(1+(1+(1+(1+(1+(1+(1+(1+(1+(1+(1+(1+(1+(1+(1+(1+(1+(1+(1+(1))))))))))))))))))))", "20", "20"),
            ("1,000,000 * 3", "3000000", "3000000"),
            ("x = 5; x^2", "25", "25"),
            ("x = 5; y = x + 1; (x + y) * 2", "22", "22"),
            ("x = (2 + 3); (x + 1)^2", "36", "36"),
            ("1e3", "1000", "1000"),
            ("0x10 + 0", "0x10", "0x10"),
            ("9007199254740993 - 1", "9007199254740992", "9007199254740992"),
        ] {
            assert_eq!(exact(expression), (Some(want.to_owned()), decimal.to_owned()), "{expression}");
        }
        let power = "1606938044258990275541962092341162602522202993782792835301376";
        assert_eq!(exact("2^200"), (Some(power.to_owned()), power.to_owned()));
    }

    #[test]
    fn irrational_results_say_so_and_show_only_digits_that_are_right() {
        for (expression, want) in [
            ("sqrt(2)", std::f64::consts::SQRT_2),
            ("sin(1)", 1_f64.sin()),
            ("ln(10)", std::f64::consts::LN_10),
            ("2^0.5", std::f64::consts::SQRT_2),
            ("e", std::f64::consts::E),
        ] {
            let (exact, got) = exact(expression);
            assert_eq!(exact, None, "{expression}");
            assert!((got.parse::<f64>().unwrap() - want).abs() < 1e-14 * want, "{expression}: {got}");
            assert!(got.len() <= 17, "{got}");
        }
        assert_eq!(exact("pi"), (Some("π".to_owned()), "3.141592653589793238462643383279503".to_owned()));
    }

    #[test]
    fn units_are_converted_exactly() {
        for (value, unit, want, decimal) in [
            ("5 km", "m", Some("5000 m"), "5000 m"),
            ("60 mph", "km/h", Some("96.56064 km / h"), "96.56064 km / h"),
            ("20 C", "F", Some("68 °F"), "68 °F"),
            ("-40 F", "C", Some("-40 °C"), "-40 °C"),
            ("1 mile", "feet", Some("5280 feet"), "5280 feet"),
            ("1 GiB", "MB", Some("1073.741824 MB"), "1073.741824 MB"),
            ("1/3 hours", "minutes", Some("20 minutes"), "20 minutes"),
            ("5 km", "miles", Some("78125/25146 miles"), "3.106855961186669848087170921816591 miles"),
            ("3 m^2", "cm^2", Some("30000 cm^2"), "30000 cm^2"),
            ("1 hour 30 minutes", "seconds", Some("5400 seconds"), "5400 seconds"),
        ] {
            let got =
                convert(value, unit, Options::default(), &never).unwrap_or_else(|e| panic!("{value} in {unit}: {e}"));
            assert_eq!((got.exact.as_deref(), got.decimal.as_str()), (want, decimal), "{value} in {unit}");
        }
        for (value, unit) in
            [("5 km", "kg"), ("5 km", ""), ("5 km", "nonsense"), ("5; 6", "m"), ("5 km", "m; 3"), ("5", "m)(")]
        {
            assert_eq!(
                convert(value, unit, Options::default(), &never).unwrap_err().code(),
                "invalid_arguments",
                "{value} in {unit}"
            );
        }
    }

    #[test]
    fn precision_and_fractions_are_a_choice() {
        let with = |precision, rational| evaluate("5/8 + 1/3", Options { precision, rational }, &never).unwrap();
        assert_eq!(with(3, false).decimal, "0.958");
        for (expression, precision, want) in [
            ("5 km to miles", 3, "3.11 miles"),
            ("78125/25146", 3, "3.11"),
            ("3.10686", 3, "3.11"),
            ("12355.67", 3, "12400"),
            ("10.0568", 3, "10.1"),
            ("1/300", 2, "0.0033"),
            ("-200/3", 4, "-66.67"),
            ("e^10", 3, "22000"),
            ("sqrt(9.6100001)", 3, "3.1"),
            ("2 pi", 4, "6.283"),
            ("(1 + 2i)/3", 3, "0.333 + 0.667i"),
            ("0x10/3", 3, "0x5.55"),
        ] {
            let got = evaluate(expression, Options { precision, rational: false }, &never).unwrap();
            assert_eq!(got.decimal, want, "{expression} to {precision}");
        }
        assert_eq!(with(100, false).decimal.len(), 102);
        let fraction = evaluate("2.5", Options { precision: 34, rational: true }, &never).unwrap();
        assert_eq!(fraction.exact.as_deref(), Some("5/2"));
        for precision in [0, 101] {
            let refused = evaluate("1", Options { precision, rational: false }, &never);
            assert_eq!(refused.unwrap_err().code(), "invalid_arguments");
        }
    }

    #[test]
    fn what_is_no_expression_is_refused_with_a_reason() {
        let long = "1+".repeat(1001);
        let many = "-".repeat(600) + "1";
        for (expression, code) in [
            ("", "invalid_arguments"),
            ("   ", "invalid_arguments"),
            ("1 +", "invalid_arguments"),
            ("1/0", "invalid_arguments"),
            ("nonsense(3)", "invalid_arguments"),
            ("(1", "invalid_arguments"),
            ("1)", "invalid_arguments"),
            (")(", "invalid_arguments"),
            ("()", "invalid_arguments"),
            ("i^-1", "invalid_arguments"),
            (&long, "too_large"),
            (&many, "too_large"),
        ] {
            let shown: String = expression.chars().take(30).collect();
            assert_eq!(evaluate(expression, Options::default(), &never).map_err(|e| e.code()), Err(code), "{shown}");
        }
    }

    #[test]
    fn chance_clocks_functions_and_the_outside_world_are_not_reached() {
        for expression in [
            "roll d6",
            "d6",
            "2d6 + 1",
            "sample 6",
            "100d100",
            "today",
            "tomorrow",
            "yesterday",
            "@2020-01-01",
            "1 USD to EUR",
            "f = x: f x; f 1",
            "(x: x x) (x: x x)",
            "x => x",
            r"\x.x",
            "λx.x",
            "1 << 1000000000000",
            "10 to words",
            "floor(10^36/3)",
            "round(2.5)",
            "ceil 2.5",
            "@debug 1",
            "zqzqa",
        ] {
            let got = evaluate(expression, Options::default(), &never);
            assert_eq!(got.map_err(|e| e.code()), Err("invalid_arguments"), "{expression}");
        }
    }

    #[test]
    fn endless_work_stops_when_the_caller_says_so() {
        for expression in
            ["9^9^9^9", "10^10000000", "10000000!", "7^-100000000", "1e1000000000", "fibonacci(100000000)"]
        {
            let asked = std::cell::Cell::new(0);
            let soon = || {
                asked.set(asked.get() + 1);
                asked.get() > 3
            };
            let got = evaluate(expression, Options::default(), &soon);
            assert_eq!(got.map_err(|e| e.code()), Err("timeout"), "{expression}");
        }
    }

    #[test]
    fn a_result_beyond_the_limit_is_too_large() {
        assert_eq!(evaluate("10^30000", Options::default(), &never).map_err(|e| e.code()), Err("too_large"));
        assert_eq!(exact("10^300").1.len(), 301);
    }
}

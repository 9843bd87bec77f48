//! `command::`: programs of the machine, for plugins that may run them. Running is the service's; here scripts ask for it.

use super::argument::{Options, scalar, unfit, with_bytes};
use crate::base::error::{Error, Kind, Result};
use crate::script::control;
use crate::script::ctx::{self, Ctx, OrRaise, Res};
use crate::script::module::HostModule;
use crate::service::command::{self, Commands, DEFAULT_MAX_BYTES, Order};
use crate::service::permissions::Permission;
use rhai::{Array, Dynamic, Map, NativeCallContext};

const OPTIONS: [&str; 4] = ["stdin", "env", "timeout", "max_bytes"];

/// The module.
pub fn module() -> HostModule {
    HostModule::new(
        "command",
        "Programs of the machine that the host runs on. The plugin needs RUN_COMMANDS, which its owner grants: a program may do whatever the user of the host may, so this is the widest permission there is. There is no shell: nothing in an argument is a wildcard, a variable or a second command. A program works in the plugin's data folder, knows little of the host's environment (PATH, HOME, LANG and their like, and LAPIDARY_ROOT), and is pointed to the proxy of `user/lapidary.toml` where there is one, which a program may ignore. It ends with the call, at a deadline or a cancel too, and so does everything that it started and that stayed in its group of processes. Not available in a private chat, because a program may write anywhere. Options: `stdin` (text or a blob), `env` (a map of more variables), `timeout` (seconds; the call's deadline counts too), `max_bytes` (of each output, 1 MiB unless given).",
        || rhai::exported_module!(api),
    )
}

fn run(call: &NativeCallContext, program: &str, arguments: &Array, opts: Map) -> Res<Map> {
    let ctx = ctx::live(call)?;
    let done = permit(&ctx).and_then(|()| order(&ctx, program, arguments, opts)).and_then(|order| {
        // Both outputs are held as bytes, then as texts.
        control::reserve(order.max_bytes.saturating_mul(2))?;
        ctx.control.wait(&ctx.services.runtime, command::run(order))
    });
    let done = done.or_raise(call)?;
    let text = |bytes: Vec<u8>| -> Res<Dynamic> {
        // What is no text becomes a character of three bytes.
        control::reserve(if std::str::from_utf8(&bytes).is_ok() { 0 } else { bytes.len() * 3 }).or_raise(call)?;
        let bytes = match ctx.redactor() {
            Some(redactor) => redactor.bytes(bytes),
            None => bytes,
        };
        Ok(String::from_utf8_lossy(&bytes).into_owned().into())
    };
    let mut map = Map::new();
    map.insert("code".into(), done.code.into());
    map.insert("stdout".into(), text(done.stdout)?);
    map.insert("stderr".into(), text(done.stderr)?);
    Ok(map)
}

fn permit(ctx: &Ctx) -> Result<()> {
    let plugin = &ctx.plugin;
    plugin.grants.load().require(Permission::RunCommands, &plugin.name)?;
    if ctx.services.commands == Commands::Refused {
        return Err(Error::new(Kind::Disabled, "no program is run in a test")
            .hint("test what the tool makes of an output, in a function that is given it"));
    }
    if ctx.private {
        return Err(Error::new(Kind::Disabled, "no program is run in a private chat, because it may write anywhere")
            .hint("ask in another chat"));
    }
    Ok(())
}

fn order(ctx: &Ctx, program: &str, arguments: &Array, opts: Map) -> Result<Order> {
    let options = Options::read(opts, &OPTIONS)?;
    let mut given = Vec::new();
    for (at, argument) in arguments.iter().enumerate().take(command::MAX_ARGUMENTS + 1) {
        let text = scalar(argument, &format!("args[{at}]"))?;
        control::reserve(text.len())?;
        given.push(text.to_string());
    }
    let mut variables = Vec::new();
    if let Some(env) = options.value("env") {
        let map = env.read_lock::<Map>().ok_or_else(|| unfit("env", "a map", env))?;
        for (name, value) in map.iter().filter(|(_, value)| !value.is_unit()) {
            let value = scalar(value, &format!("env.{name}"))?;
            control::reserve(name.len() + value.len())?;
            variables.push((name.to_string(), value.to_string()));
        }
    }
    let stdin = options.value("stdin").map(|value| {
        with_bytes(value, "stdin", |bytes| {
            control::reserve(bytes.len())?;
            Ok(bytes.to_vec())
        })
    });
    let memory = usize::try_from(ctx.control.budget().memory).unwrap_or(usize::MAX);
    let max_bytes = options.count("max_bytes", 0..=memory / 4)?.unwrap_or(DEFAULT_MAX_BYTES.min(memory / 4));
    let paths = &ctx.services.paths;
    let belt = ctx.services.net.belt(&ctx.plugin.direct.all());
    if let Some(password) = &belt.password {
        ctx.used.add_text(password);
    }
    Ok(Order {
        program: program.to_owned(),
        arguments: given,
        stdin: stdin.transpose()?.unwrap_or_default(),
        variables,
        folder: paths.files_dir(&ctx.plugin.name),
        root: paths.root().to_path_buf(),
        timeout: options.limit("timeout")?,
        network: belt.variables,
        max_bytes,
    })
}

#[rhai::plugin::export_module]
mod api {
    use crate::script::ctx::Res;
    #[allow(clippy::wildcard_imports)] // what the macro's own code names
    use rhai::plugin::*;
    use rhai::{Array, Map};

    #[rhai_fn(return_raw)]
    pub fn run(call: NativeCallContext, program: &str, args: Array) -> Res<Map> {
        super::run(&call, program, &args, Map::new())
    }

    /// Runs a program, a name that is looked for in PATH or an absolute path, with these arguments: texts, numbers and bools.
    /// Returns `#{code, stdout, stderr}`. A code other than 0 is an answer, not an error; below zero it is the number of the
    /// signal that ended the program. What is no UTF-8 in an output is replaced.
    ///
    /// Throws `permission_denied`, `not_found` for a program that is not there, `timeout`, `too_large` for more output than
    /// `max_bytes`, `invalid_arguments`, and `disabled` in a private chat and in tests. A `Secret` is no argument, no variable
    /// and no input: a program could send it anywhere.
    ///
    /// ```rhai
    /// let done = command::run("printf", ["%s and %s", "this", 2]);
    /// assert_eq([done.code, done.stdout, done.stderr], [0, "this and 2", ""]);
    /// assert_eq(command::run("cat", [], #{stdin: "from the script", timeout: 5}).stdout, "from the script");
    /// ```
    #[rhai_fn(return_raw, name = "run")]
    pub fn run_with(call: NativeCallContext, program: &str, args: Array, opts: Map) -> Res<Map> {
        super::run(&call, program, &args, opts)
    }
}

#!/usr/bin/env python3
"""Plays a session with a live host through the official Python client and prints what both sides said.

    python3 -m venv venv && venv/bin/pip install mcp
    venv/bin/python tests/py/mcp_transcript.py target/release/lapidary

Every step is checked; the script ends with 1 at the first that does not hold.
"""
import pathlib
import subprocess
import sys
import tempfile

import anyio
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

PATIENCE = 30  # seconds until a step counts as hung

DICE = """//! Dice.
const EMOJI = "🎲";
/// Roll dice and add them up. Use it whenever someone asks for a roll.
///
/// @param {integer 2..1000} sides=6 - Sides on each die.
/// @param {integer 1..100} count=1 - How many dice.
/// @local
fn throw_dice(sides, count) { `%s: ${count}d${sides}` }
"""

PAINT = """const SETTINGS = #{ ARTIST: "" };
fn get_tools() {
  let text = "Describe a picture.";
  let name = settings::get("ARTIST");
  if name != () && name != "" { text += ` Write '${name}' for yourself.`; }
  [#{ type: "function", is_local: true, function: #{ name: "paint", description: text,
      parameters: #{ type: "object", properties: #{} } } }]
}
const TOOLS = [];
fn execute(name, arguments, config, plugin_settings) { [`painted by '${plugin_settings.ARTIST}'`, true] }
"""


def say(who, what):
    print(f"{who:>8} | " + str(what).rstrip().replace("\n", "\n         | "), flush=True)


def check(holds, what):
    if not holds:
        sys.exit(f"does not hold: {what}")


class Workshop:
    def __init__(self, program):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="lapidary-transcript-"))
        self.program = str(pathlib.Path(program).resolve())
        (self.dir / "user/tools").mkdir(parents=True)

    def save(self, name, text):
        path = self.dir / "user/tools" / f"{name}.rhai"
        half = path.with_suffix(".tmp~")
        half.write_text(text)
        half.rename(path)

    def type(self, *words):
        say("terminal", "$ lapidary " + " ".join(words))
        done = subprocess.run([self.program, "--root", str(self.dir), *words], capture_output=True, text=True, timeout=PATIENCE)
        say("", done.stdout + done.stderr)
        return done


class Notices:
    """Counts `list_changed` and wakes whoever waits for the next one."""

    def __init__(self):
        self.count, self.news = 0, anyio.Event()

    async def hear(self, message):
        # Whatever the client hands over: a notification itself, or one inside an envelope.
        message = getattr(message, "root", message)
        if getattr(message, "method", "") == "notifications/tools/list_changed":
            self.count += 1
            self.news.set()
            self.news = anyio.Event()

    async def wait(self, until):
        with anyio.fail_after(PATIENCE):
            while self.count < until:
                await self.news.wait()


async def play(program):
    shop, notices = Workshop(program), Notices()
    shop.save("throw", DICE % "v1")
    shop.save("paint", PAINT)
    server = StdioServerParameters(command=shop.program, args=["--root", str(shop.dir), "mcp", "--toolset", "throw, paint"])
    async with stdio_client(server) as (read, write), ClientSession(read, write, message_handler=notices.hear) as session:

        async def call(tool, arguments):
            say("client", f"tools/call {tool} {arguments}")
            result = await session.call_tool(tool, arguments)
            text = "\n".join(block.text for block in result.content)
            say("server", ("isError: " if result.is_error else "") + text)
            return result.is_error, text

        async def listing():
            say("client", "tools/list")
            tools = (await session.list_tools()).tools
            for tool in tools:
                say("server", f"{tool.title or tool.name}: {tool.description}")
            return {tool.name: tool for tool in tools}

        say("client", "initialize")
        hello = await session.initialize()
        say("server", f"{hello.server_info.name} {hello.server_info.version}, revision {hello.protocol_version}, {hello.capabilities.tools}")
        tools = await listing()
        check(set(tools) == {"throw_dice", "paint"}, "both tools are listed")
        say("server", f"throw_dice takes {tools['throw_dice'].input_schema}")
        failed, text = await call("throw_dice", {"sides": 20, "count": 2})
        check(not failed and text == "v1: 2d20", "the call runs")
        failed, text = await call("throw_dice", {"sides": "many"})
        check(failed and "sides" in text, "a refusal names the argument")

        say("editor", "saves user/tools/throw.rhai: new code, new description")
        shop.save("throw", (DICE % "v2").replace("Roll dice and", "Throw dice and"))
        await notices.wait(1)
        say("server", "notifications/tools/list_changed")
        check((await listing())["throw_dice"].description.startswith("Throw"), "the new description is listed")
        check((await call("throw_dice", {}))[1] == "v2: 1d6", "the next call runs the new code")

        say("editor", "saves user/tools/throw.rhai: a syntax error")
        shop.save("throw", "fn throw_dice(sides { oops")
        shop.type("check", str(shop.dir / "user/tools/throw.rhai"))
        check((await call("throw_dice", {}))[1] == "v2: 1d6", "the last good code answers")

        done = shop.type("settings", "set", "paint", "ARTIST", "Ruby")
        check(done.returncode == 0, "the setting is saved")
        await notices.wait(2)
        say("server", "notifications/tools/list_changed")
        check("'Ruby'" in (await listing())["paint"].description, "the description names the setting")
        check((await call("paint", {}))[1] == "painted by 'Ruby'", "the call sees the setting")

        say("editor", "saves user/tools/throw.rhai: mended")
        shop.save("throw", (DICE % "v3").replace("Roll dice and", "Throw dice and"))
        with anyio.fail_after(PATIENCE):
            while (await session.call_tool("throw_dice", {})).content[0].text != "v3: 1d6":
                pass
        await call("throw_dice", {})
        check(notices.count == 2, f"each change was told once, and only changes: {notices.count}")
        say("client", "closes the input; the host ends")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    anyio.run(play, sys.argv[1])

"""Scripts: what they may do, what their values become, and what they cannot do to the engine."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flowstone.dispatchers.script.dispatcher import ScriptDispatcher
from flowstone.expr.model import Literal
from flowstone.plan.units import ScriptSpec
from flowstone.ports.dispatcher import Dispatch
from flowstone.redaction import MARK, Redactor
from flowstone.run.outcome import Outcome, Reason

SECRET = "tok-secret-4711"


class Bench:
    """One dispatcher in one loop, so that scripts share its worker."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.dispatcher = ScriptDispatcher(dict(os.environ), Redactor([SECRET]))

    def perform(self, source: Any, given: Any = None, timeout_ms: int = 20_000, **more: Any) -> Outcome:
        spec = ScriptSpec(Literal({"source": source, "input": given, **more}))
        dispatch = Dispatch("r", "s", "s:solo", 0, 0, "", spec, timeout_ms=timeout_ms)
        return self.loop.run_until_complete(self.dispatcher.perform(dispatch))

    def value(self, source: str, given: Any = None) -> Any:
        outcome = self.perform(source, given)
        assert outcome.ok, outcome.error
        assert outcome.value.keys() == {"value"}
        return outcome.value["value"]

    def error(self, source: Any, given: Any = None, **more: Any) -> str:
        outcome = self.perform(source, given, **more)
        assert outcome.reason is Reason.SCRIPT_ERROR
        assert not outcome.ran
        assert outcome.error is not None
        assert outcome.error.startswith("script: ")
        return outcome.error

    def workers(self) -> list[int]:
        return [worker._process.pid for worker in self.dispatcher._idle]

    def close(self) -> None:
        self.loop.run_until_complete(self.dispatcher.close())
        self.loop.run_until_complete(self.dispatcher.close())
        self.loop.close()


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    found = Bench()
    yield found
    found.close()


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("var a = 2; const b = 3; a * b;", 6),
        ("undefined", None),
        ("null", None),
        ("", None),
        ("// nothing\n", None),
        ("1.5", 1.5),
        ("1e21", 1e21),
        ("-0", 0),
        ("2 ** 53 - 1", 2**53 - 1),
        ("123456789012345678901234567890n", 123456789012345678901234567890),
        ("[1,,undefined]", [1, None, None]),
        ("({a: undefined, b: {c: [true]}})", {"a": None, "b": {"c": [True]}}),
        ("new Map([['a', 1], ['b', new Map()]])", {"a": 1, "b": {}}),
        ("new Set([1, 'x'])", [1, "x"]),
        ("new Date(0)", "1970-01-01T00:00:00Z"),
        ("new Date(1500)", "1970-01-01T00:00:01.5Z"),
        ("[new Number(1), new String('s'), new Boolean(false), Object(5n)]", [1, "s", False, 5]),
        ("({toJSON() { return {x: 1} }})", {"x": 1}),
        ("'a\\0b\\u2028\\n'", "a\0b\u2028\n"),
        ("'𝄞é'", "𝄞é"),
        ("'x\\u0000y'.length", 3),
        ("Promise.resolve(4)", 4),
        ("(async () => { let x = 0; for (let i = 0; i < 100; i++) x += await i; return x })()", 4950),
        ("const {x = 5, ...rest} = {y: 1}; [x, rest, ...[2]]", [5, {"y": 1}, 2]),
        ("class A { #p = 3; get p() { return this.#p } } new A().p", 3),
        ("[1, [2, [3]]].flat(Infinity).at(-1) ?? 0", 3),
        ("const input = 3; input", 3),
        ("let o = {}; Object.defineProperty(o, '__proto__', {value: 1, enumerable: true}); o", {"__proto__": 1}),
    ],
)
def test_values(bench: Bench, source: str, value: Any) -> None:
    if not source.strip():
        assert "with.source is required" in bench.error(source)
        return
    found = bench.value(source)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    "given",
    [
        None,
        True,
        0,
        -1.5,
        "a\0b\n𝄞\u2028",
        [],
        {"a": [{"b": None}], "__proto__": 1, "constructor": "x"},
        [2**53 - 1, 2**53 + 1, -(2**70), {"deep": [2**64]}],
        {"__proto__": 2**60},
    ],
)
def test_an_input_comes_back_as_it_was(bench: Bench, given: Any) -> None:
    assert bench.value("input", given) == given


def test_large_integers_are_exact_in_texts_too(bench: Bench) -> None:
    assert bench.value("`${input.id}`", {"id": 9007199254740993}) == "9007199254740993"


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        ("({ a: [1 / 0] })", ["value.a[0]", "Infinity cannot be stored as JSON"]),
        ("NaN", ["NaN cannot be stored as JSON"]),
        ("() => 1", ["a function cannot be stored as JSON"]),
        ("Symbol('x')", ["a symbol cannot be stored as JSON"]),
        ("new Uint8Array(2)", ["bytes cannot be stored as JSON"]),
        ("new Map([[1, 2]])", ["a Map with a key of type number cannot be stored as JSON"]),
        ("/x/", ["a RegExp cannot be stored as JSON"]),
        ("new Date(NaN)", ["an invalid Date cannot be stored as JSON"]),
        ("'\\ud800'", ["cannot be stored as JSON", "surrogate"]),
        ("let a = []; a.push(a); a", ["cannot be stored as JSON", "holds itself"]),
        ("new Promise(() => {})", ["never settled"]),
        ("throw new Error('boo')", ["Error: boo", "(line 1)"]),
        ("\n\nfoo.bar", ["ReferenceError: foo is not defined", "(line 3)"]),
        ("\n((", ["SyntaxError", "(line 2)"]),
        ("function f() {\n null.x\n}\nf()", ["TypeError", "(line 2)"]),
        ("throw 'just text'", ["script: just text"]),
        ("throw null", ["script: null"]),
        ("throw Symbol('x')", ["a symbol"]),
        ("throw {toString() { throw 1 }}", ["no text"]),
        ("Promise.reject(new Error('later'))", ["Error: later"]),
        ("({get x() { throw new Error('in getter') }})", ["in getter"]),
        ("import('os')", ["could not load module"]),
        ("import fs from 'fs'", ["SyntaxError"]),
        ("function f() { return f() + 1 } f()", ["RangeError"]),
        ("let s = []; for (;;) s.push(new Array(1e6).fill(1))", ["memory"]),
        ("'x'.repeat(2 ** 29)", ["memory"]),
        ("let a = 1; for (let i = 0; i < 40; i++) a = [a, a]; a", ["more than 1000000 parts cannot be stored as JSON"]),
        ("'x'.repeat(40 << 20)", ["larger than 32 MiB"]),
        ("let n = 0; const f = () => Promise.resolve().then(f); f(); 1", ["reactions of promises"]),
        ("(async () => { for (;;) await 0 })(); 1", ["reactions of promises"]),
    ],
)
def test_what_fails_says_why(bench: Bench, source: str, texts: list[str]) -> None:
    error = bench.error(source)
    for text in texts:
        assert text in error


def test_there_are_no_host_objects(bench: Bench) -> None:
    names = ["require", "process", "console", "setTimeout", "setInterval", "setImmediate", "queueMicrotask", "fetch"]
    names += ["XMLHttpRequest", "performance", "print", "std", "os", "bjson", "scriptArgs", "Worker", "gc", "navigator"]
    names += ["load", "module", "exports", "window", "global", "functions"]
    kinds = bench.value("[" + ",".join(f"typeof {name}" for name in names) + "]")
    assert dict(zip(names, kinds, strict=True)) == dict.fromkeys(names, "undefined")


def test_scripts_know_nothing_of_each_other(bench: Bench) -> None:
    bench.value("globalThis.left = 1; Array.prototype.map = () => 'bad'; JSON.stringify = null; 1")
    assert bench.value("[typeof left, [1].map(x => x + 1), JSON.stringify(1)]") == ["undefined", [2], "1"]


def test_a_script_that_spoils_the_language_spoils_its_own_value_only(bench: Bench) -> None:
    bench.perform("String.prototype.replace = Array.prototype.join = Object.keys = () => { throw 1 }; ({a: [1]})")
    bench.perform("Promise.prototype.then = 5; globalThis.Date = Map; globalThis.Error = 1; Promise.resolve(1)")
    assert bench.value("({a: [1]})") == {"a": [1]}


@pytest.mark.parametrize(
    "source",
    ["for (;;) ;", "/(a*)*b/.test('a'.repeat(40))", "Array(5e7).fill(1).sort()"],
)
def test_the_timeout_is_a_wall_clock(bench: Bench, source: str) -> None:
    started = time.monotonic()
    outcome = bench.perform(source, timeout_ms=300)
    assert not outcome.ok
    assert not outcome.ran
    assert time.monotonic() - started < 3
    if outcome.reason is Reason.TIMEOUT:
        assert outcome.error == "script: interrupted: timed out after 300ms"
    assert bench.value("1 + 1") == 2


def test_a_worker_is_used_again_until_it_was_ended(bench: Bench) -> None:
    bench.value("1")
    before = bench.workers()
    assert bench.error("throw 1")
    assert bench.value("2") == 2
    assert bench.workers() == before
    bench.perform("for (;;) ;", timeout_ms=100)
    assert bench.workers() != before


def test_a_worker_that_died_is_replaced(bench: Bench) -> None:
    bench.value("1")
    for pid in bench.workers():
        os.kill(pid, signal.SIGKILL)
    outcome = bench.perform("3")
    assert outcome.ok or "worker process ended" in (outcome.error or "")
    assert bench.value("3") == 3


def test_a_secret_is_redacted_in_value_and_error(bench: Bench) -> None:
    assert bench.value("({['k' + input]: [input], j: JSON.stringify({input})})", SECRET) == {
        f"k{MARK}": [MARK],
        "j": json.dumps({"input": MARK}).replace(" ", ""),
    }
    assert SECRET not in bench.error("throw new Error(input)", SECRET)


def test_arguments_of_an_expression_are_checked_too(bench: Bench) -> None:
    assert "with.source is required" in bench.error(None)
    assert "with.source is required" in bench.error(["1"])
    assert "unknown with.nope" in bench.error("1", nope=1)
    outcome = bench.perform(42)
    assert outcome.value == {"value": 42}


def test_many_at_once_and_cancelled() -> None:
    async def main() -> None:
        dispatcher = ScriptDispatcher(dict(os.environ), Redactor())

        def dispatch(source: str) -> Dispatch:
            return Dispatch("r", "s", "s:solo", 0, 0, "", ScriptSpec(Literal({"source": source})))

        outcomes = await asyncio.gather(*(dispatcher.perform(dispatch(f"{n} * 2")) for n in range(8)))
        assert [outcome.value["value"] for outcome in outcomes] == [n * 2 for n in range(8)]
        task = asyncio.ensure_future(dispatcher.perform(dispatch("for (;;) ;")))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await dispatcher.close()

    asyncio.run(main())


def test_the_worker_goes_with_its_driver_in_the_middle_of_a_script(tmp_path: Path) -> None:
    program = tmp_path / "driver.py"
    program.write_text(
        "import asyncio\n"
        "from flowstone.dispatchers.script.worker import Worker\n"
        "async def main():\n"
        "    worker = await Worker.start({})\n"
        "    print(worker._process.pid, flush=True)\n"
        "    await worker.run('for (;;) ;', None, None)\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen(
        [sys.executable, str(program)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as driver:
        assert driver.stdout is not None
        pid = int(driver.stdout.readline())
        time.sleep(0.3)
        driver.kill()
    deadline = time.monotonic() + 5
    while _runs(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not _runs(pid)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat")
        return not state.exists() or state.read_text().rpartition(")")[2].split()[0] != "Z"
    except (OSError, IndexError):
        return False

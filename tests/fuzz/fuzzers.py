"""Random and mutated texts for each parser: `python -m tests.fuzz.fuzzers NAME SECONDS [SEED]`.

A parser may accept a text or refuse it with its documented error; anything else is a mistake: another
exception, more than two seconds of CPU for one text, a peak above 200 MiB. Prints one JSON object
with figures; a mistake is printed with the text that brought it, and the exit code is 1.
"""

from __future__ import annotations

import json
import random
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from flowstone.errors import FlowstoneError, PlanVersionError, SourceError

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "examples" / "deploy"
CPU_S, PEAK_MIB, SOURCE_BYTES = 2.0, 200, 1024 * 1024
WORDS = [
    b"\n", b"\n\n", b"  ", b"\t", b": ", b"- ", b"---\n", b"...\n", b"[", b"]", b"{", b"}", b"&a ", b"*a", b"!!str ", b"|\n",
    b">-\n", b"? ", b"# ", b"## ", b"### gate\n", b"```\n", b"~~~\n", b"> ", b"<!--", b"-->", b"{{", b"}}", b"'", b'"', b"\\",
    b"\\u0000", b"\x00", b"\r", b"\r\n", b"\xef\xbb\xbf", b"\xff", "\u2028".encode(), "\x85".encode(), "日本".encode(), b"0x1F",
    b"1e999", b".nan", b"-0", b"1.10", b"9" * 400, b"null", b"~", b"true", b"on", b"2024-01-01", b"params.", b"steps.", b".output",
    b"[0]", b"timeout: 10m", b"retry: {max: 1}", b"map:\n", b"route:\n", b"with:\n", b"uses: ", b"run: ", b"needs: ", b"poll: {}",
    b"steps:\n", b"jobs:\n", b"on: push", b"apiVersion: orun.dev/v1", b"$ref", b"1h2m", b"ms", b"* * * * *", b"A=", b"export ", b"${A}",
    b"[1,2].map(x, x)", b"&& ", b"==", b"'''", b"/*", b"//",
]  # fmt: skip

Fuzzer = Callable[[bytes], bool]
"""Parses a text: True when it was accepted, False when it was refused as documented."""


def fuzz_yaml(data: bytes) -> bool:
    from flowstone.diagnostics import Report
    from flowstone.source.yaml import YamlRules, read_yaml

    report = Report()
    read_yaml(_text(data), YamlRules(), report)
    return not report.failed


def fuzz_markdown(data: bytes) -> bool:
    from flowstone.source.markdown import sections, split_front_matter

    text = _text(data)
    front = split_front_matter(text)
    sections(text, 1)
    return front is not None


def fuzz_akm_markdown(data: bytes) -> bool:
    return _compiles("/nowhere/flow.md", data)


def fuzz_akm_github(data: bytes) -> bool:
    return _compiles("/nowhere/flow.yml", data)


def fuzz_akm_prompts(data: bytes) -> bool:
    from flowstone.diagnostics import Report
    from flowstone.formats.akm_prompts.asset import parse_prompt

    report = Report()
    found = [parse_prompt(_text(data), family, report) for family in ("commands", "agents")]
    assert report.sorted() or all(found), "no asset, and no reason why"
    return all(found)


def fuzz_akm_task(data: bytes) -> bool:
    from flowstone.diagnostics import Report
    from flowstone.formats.akm_task.parse import parse_task

    return parse_task(_text(data), Report()) is not None


def fuzz_crontab(data: bytes) -> bool:
    """Whatever a table holds, our row goes in and out again and leaves the rest alone."""
    from flowstone.schedule.crontab import row_of, with_row

    line = b"0 6 * * * cd / && akm >/dev/null # flowstone[0123abcd] m//tasks/t#0\n"
    with_ours = with_row(data, "m//tasks/t#0", line, "0123abcd")
    without = with_row(with_ours, "m//tasks/t#0", b"", "0123abcd")
    ours = any(row_of(old + b"\n", "0123abcd") for old in data.split(b"\n"))
    assert ours or without == (data if data.endswith(b"\n") or not data else data + b"\n")
    return not ours


def fuzz_orun(data: bytes) -> bool:
    return _compiles("/nowhere/flow.yaml", data)


def fuzz_orun_job(data: bytes) -> bool:
    from flowstone.errors import PlanVersionError
    from flowstone.formats.orun_job.compile import compile_job
    from flowstone.formats.orun_job.planned import decode, encode
    from flowstone.plan.checks.structure import problems_of

    compiled = _read(data, "/nowhere/job.yaml", compile_job, "/nowhere/job.yaml")
    if compiled is None or compiled.plan is None:
        assert compiled is None or compiled.diagnostics, "no plan, and no reason why"
        return False
    assert problems_of(compiled.plan) == [], "a plan that its own check refuses"
    try:
        text = encode(compiled.plan, "job.yaml")
    except PlanVersionError:
        return False  # a job whose plan is too large is refused with both sizes
    assert encode(decode(text).plan, "job.yaml") == text
    return True


def fuzz_orun_blueprint(data: bytes) -> bool:
    from flowstone.formats.orun_job.blueprint import compile_blueprint
    from flowstone.formats.orun_job.lock import decode, encode, pins_of

    found, diagnostics = _read(data, "/nowhere/service.yaml", compile_blueprint) or (None, ("unreadable",))
    if found is None:
        assert diagnostics, "no blueprint, and no reason why"
        return False
    pins = pins_of("service.yaml", found)
    assert decode(encode(pins)) == pins
    return True


def fuzz_orun_plan_file(data: bytes) -> bool:
    from flowstone.formats.orun_job.planned import decode

    try:
        decode(_text(data))
    except PlanVersionError:
        return False
    return True


def fuzz_orun_hooks_lock(data: bytes) -> bool:
    from flowstone.formats.orun_job.lock import decode, encode

    try:
        pins = decode(_text(data))
    except PlanVersionError:
        return False
    assert decode(encode(pins)) == pins
    return True


def fuzz_duration(data: bytes) -> bool:
    from flowstone.expr.duration import DurationProblem, parse_go_duration, parse_timeout

    accepted = 0
    for parse in (parse_timeout, parse_go_duration):
        try:
            parse(_text(data))
            accepted += 1
        except DurationProblem:
            pass
    return accepted > 0


def fuzz_refs(data: bytes) -> bool:
    from flowstone.expr.refs import ReferenceProblem, parse_reference

    try:
        parse_reference(_text(data))
    except ReferenceProblem:
        return False
    return True


def fuzz_templates(data: bytes) -> bool:
    from flowstone.expr.cel import EVERYWHERE
    from flowstone.expr.templates import parse_template

    return parse_template(_text(data)[:4_000], EVERYWHERE).text is not None


def fuzz_cron(data: bytes) -> bool:
    from flowstone.expr.cron import CronProblem, check_cron

    try:
        check_cron(_text(data))
    except CronProblem:
        return False
    return True


def fuzz_dotenv(data: bytes) -> bool:
    from flowstone.assets.dotenv import parse_dotenv

    try:
        parse_dotenv(data, "env/local")
    except SourceError:
        return False
    return True


def fuzz_remote(data: bytes) -> bool:
    from flowstone.source.remote import beside, is_remote, parse_remote

    base, _, ref = _text(data).partition("\n")
    if not is_remote(base):
        return False
    try:
        found = parse_remote(beside(base, ref) if ref else base)
    except SourceError:
        return False
    first = parse_remote(base)
    assert found.repo == first.repo, "a path led out of the repository"
    assert not found.repo or not {"", ".", ".."} & set(found.path.split("/")), found.path
    return True


def fuzz_lock(data: bytes) -> bool:
    from flowstone.source.lockfile import FOLDER, decode_lock, encode_lock

    try:
        lock = decode_lock(data, "flowstone.lock")
    except SourceError:
        return False
    for pin in lock.files:
        parts = pin.path.split("/")
        assert parts[0] == FOLDER, pin.path
        assert not {"", ".", ".."} & set(parts), pin.path
    text = encode_lock(lock.files)
    assert encode_lock(decode_lock(text.encode(), "flowstone.lock").files) == text
    return True


def fuzz_plan(data: bytes) -> bool:
    from flowstone.plan.codec import decode_plan

    try:
        decode_plan(_text(data))
    except PlanVersionError:
        return False
    return True


def lock_text() -> str:
    from flowstone.source.lockfile import encode_lock, pin_of
    from flowstone.source.remote import parse_remote

    github, web = parse_remote("github:acme/flows@v1//a b/c.yaml"), parse_remote("https://host/w.yaml?x=%2F")
    return encode_lock([pin_of(github, "a" * 64, "b" * 40, ["x.yaml"]), pin_of(web, "c" * 64, "", ["x.yaml", "y"])])


def job_texts() -> dict[str, list[bytes]]:
    """The example of a job, and what is made of it."""
    from flowstone.api import Flowstone
    from flowstone.api.jobs import plan_job
    from flowstone.formats.orun_job.lock import File, Pin, encode

    pin = Pin("service.yaml", "a", "postCreate", "release.yaml", "sha256:" + "0" * 64, (File("b.yaml", "sha256:1"),))
    with Flowstone(str(DEPLOY), {"HOME": "/nowhere"}) as flow:
        planned = plan_job(flow, "job.yaml", ".")
    features = ROOT / "examples" / "features"
    jobs = [path.read_bytes() for path in (DEPLOY / "job.yaml", features / "job.yaml", features / "approval.yaml")]
    return {
        "orun_job": jobs,
        "orun_blueprint": [(DEPLOY / "service.yaml").read_bytes()],
        "orun_plan_file": [planned.encode()],
        "orun_hooks_lock": [encode([pin]).encode()],
    }


FUZZERS: dict[str, Fuzzer] = {
    name.removeprefix("fuzz_"): function for name, function in list(globals().items()) if name.startswith("fuzz_")
}
SUFFIXES = {"akm_markdown": ".md", "markdown": ".md", "akm_prompts": ".md", "akm_github": ".yml", "orun": ".yaml"}
SEEDS = {
    "duration": [b"10m", b"1h30m", b"none", b"1.5s", b"100ms", b"90", b"-1s", b"2h45m30.5s"],
    "refs": [b"params.name", b"steps.a-b.output.list[0].x", b" steps.a.output "],
    "templates": [
        b"a {{ inputs.x + 1 }} b",
        b"{{ {'a': [1, 2]}['a'].map(x, x * 2) }}",
        b"{{ steps['a-b'].outputs.n }}",
    ],
    "akm_task": [
        b"version: 4\nuses: workflows/a\ninputs: { n: { type: integer, default: 1 } }\nschedule: '5/15 * * * MON'\n",
        b"version: 3\nrun: x\non: { schedule: [{ cron: '0 6 * * *' }] }\nakm: { timeout: 2h }\n",
        b"version: 2\nprompt: hello\nparams: { a: [1] }\nenabled: false\n",
    ],
    "crontab": [
        b"# x\r\nA=1\n0 6 * * * cd / && akm >/dev/null # flowstone[0123abcd] m//tasks/t#0\n\xff",
        b"1 1 * * * cd '/a b' && /usr/bin/env X=1 akm task # flowstone[ffffffff] m//tasks/t#0",
    ],
    "cron": [b"*/5 0-23 1,15 jan-dec mon", b"0 0 31 2 *", b"@daily"],
    "remote": [
        b"github:acme/flows@v1//a/b.yaml\n../c.yaml",
        b"https://me:pw@host:81/a%20b/c.yaml?x=1\n./d/../../e.yaml",
        b"http://[::1]:80/w.yaml#sha256:" + b"a" * 64,
    ],
    "lock": [lock_text().encode()],
    "dotenv": [b"A=1\nexport B='two words'\nC=\"x\\ny\" # end\n# only\nD=`a`\n", b"A=\r\nB=${A}\n"],
}


def corpus_of(name: str) -> list[bytes]:
    """What the mutations start from."""
    if name == "plan":
        from flowstone.plan.codec import encode_plan
        from tests.crash.scenarios import SCENARIOS

        return [encode_plan(SCENARIOS[key]()[0]).encode() for key in SCENARIOS]
    if name in SEEDS:
        return SEEDS[name]
    if name.startswith("orun_"):
        return job_texts()[name]
    suffixes = (SUFFIXES[name],) if name in SUFFIXES else (".yml", ".yaml")
    files = [path for path in (ROOT / "tests" / "conformance").rglob("*") if path.suffix in suffixes and path.is_file()]
    texts = [path.read_bytes() for path in files] + [
        p.read_bytes() for p in (ROOT / "examples").glob(f"*{suffixes[0]}")
    ]
    for cases in ("akm", "orun"):
        for line in (ROOT / "tests" / "conformance" / cases / "cases.jsonl").read_text().splitlines():
            found = json.loads(line).get("files") or {}
            texts += [v.encode() for k, v in found.items() if isinstance(v, str) and k.endswith(suffixes)]
    return [text for text in texts if len(text) <= 20_000] or [b""]


class Mutator:
    """Makes texts of a corpus, of words and of nothing, as the seed has it."""

    def __init__(self, corpus: list[bytes], seed: int) -> None:
        self._corpus = corpus
        self._chance = random.Random(seed)

    def next(self) -> bytes:
        chance = self._chance
        kind = chance.random()
        if kind < 0.03:
            return self._bomb()
        if kind < 0.08:
            return bytes(chance.choices(range(256), k=chance.randint(0, 200)))
        if kind < 0.15:
            return b"".join(chance.choices(WORDS, k=chance.randint(0, 60)))
        data = bytearray(chance.choice(self._corpus))
        for _ in range(chance.choice((1, 1, 2, 3, 8))):
            self._change(data)
        return bytes(data[:SOURCE_BYTES])

    def _change(self, data: bytearray) -> None:
        chance = self._chance
        at = chance.randint(0, len(data))
        match chance.randint(0, 6):
            case 0:
                data[at : at + chance.choice((1, 1, 4, 40))] = b""
            case 1:
                data[at:at] = chance.choice(WORDS)
            case 2:
                other = chance.choice(self._corpus)
                start = chance.randint(0, len(other))
                data[at:at] = other[start : start + chance.randint(1, 200)]
            case 3 if data:
                data[min(at, len(data) - 1)] = chance.randrange(256)
            case 4:
                data[at:at] = data[at : at + chance.randint(1, 60)] * chance.choice((1, 2, 50))
            case 5:
                del data[at:]
            case _:
                data[at : at + chance.randint(0, 8)] = chance.choice(WORDS) * chance.choice((1, 1, 3))

    def _bomb(self) -> bytes:
        """One word again and again, as large as a source may be, behind something that reads well."""
        chance = self._chance
        word = chance.choice(WORDS)
        times = chance.choice((100, 2_000, 30_000, SOURCE_BYTES // max(1, len(word))))
        start = chance.choice(self._corpus)[: chance.randint(0, 300)]
        return (start + word * times)[:SOURCE_BYTES]


class TooSlow(BaseException):
    """One text took longer than it may."""


def fuzz(name: str, seconds: float, seed: int) -> dict[str, Any]:
    """Fuzz one parser for a while; a mistake raises with the text in the notes."""
    parse, mutator = FUZZERS[name], Mutator(corpus_of(name), seed)
    signal.signal(signal.SIGPROF, _too_slow)
    figures = {"name": name, "inputs": 0, "accepted": 0, "slowest_ms": 0.0}
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        data = mutator.next()
        begun = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, CPU_S)
        try:
            figures["accepted"] += parse(data)
        except BaseException as error:
            signal.setitimer(signal.ITIMER_PROF, 0)
            error.add_note(f"{len(data)} bytes: {data[:3_000]!r}")
            raise
        signal.setitimer(signal.ITIMER_PROF, 0)
        figures["slowest_ms"] = max(figures["slowest_ms"], round((time.process_time() - begun) * 1000, 1))
        figures["inputs"] += 1
    figures["peak_mib"] = _peak_mib()
    return figures


def _peak_mib() -> int:
    """The most memory that this program held; what rusage tells counts the process that started it too."""
    try:
        with open("/proc/self/status", encoding="ascii") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) >> 10
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def _read(data: bytes, path: str, compile_: Callable[..., Any], *names: str) -> Any:
    """What a compiler makes of a text whose every workflow is the one of the example; None if it is no text."""
    from flowstone.source.file import read_source, text_of

    try:
        source = text_of(data, path)
    except SourceError:
        return None
    return compile_(*names, source, lambda _: read_source(str(DEPLOY / "release.yaml"), SOURCE_BYTES))


def _compiles(path: str, data: bytes) -> bool:
    from flowstone.formats.registry import compile_source
    from flowstone.plan.checks.structure import problems_of
    from flowstone.source.file import text_of

    try:
        source = text_of(data, path)
    except FlowstoneError:
        return False
    compiled = compile_source(path, path, source)
    if compiled.plan is None:
        assert compiled.diagnostics, "no plan, and no reason why"
        return False
    assert problems_of(compiled.plan) == [], "a plan that its own check refuses"
    return True


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _too_slow(number: int, frame: Any) -> None:
    raise TooSlow


def main(name: str, seconds: str, seed: str = "1") -> int:
    try:
        figures = fuzz(name, float(seconds), int(seed))
    except BaseException:
        traceback.print_exc()
        return 1
    print(json.dumps(figures))
    if figures["peak_mib"] > PEAK_MIB:
        print(f"{name}: a peak of {figures['peak_mib']} MiB", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

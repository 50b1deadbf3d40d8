"""A bundle to work in, and the command `akm` with its JSON read."""

import json

import pytest


class Akm:
    """`akm` in a project of its own; `.json(…)` also reads the envelope and checks the exit code."""

    def __init__(self, run, folder):
        self._run = run
        self.folder = folder

    def __call__(self, *argv, **variables):
        return self._run("akm", *argv, **variables)

    def json(self, *argv, code=0, **variables):
        done = self(*argv, **variables)
        assert done.returncode == code, done.stderr
        return json.loads(done.stdout)

    def error(self, *argv, code):
        done = self(*argv)
        assert (done.returncode, done.stdout) == (code, ""), done.stdout
        return json.loads(done.stderr[done.stderr.index("{") :])

    def workflow(self, name, *steps, head=""):
        """Write a Markdown workflow; a step is (id, shell text)."""
        listed = "".join(
            f'  - id: {step}\n    unit: {{ exec: {{ command: ["sh", "-c", {json.dumps(text)}] }} }}\n'
            for step, text in steps
        )
        body = "".join(f"\n## {step}\n\nDo {step}.\n" for step, _ in steps)
        return self.write(
            f"bundle/workflows/{name}.md",
            f"---\ntype: workflow\nupdated: 2026-01-01\n{head}steps:\n{listed}---\n\n# {name}\n{body}",
        )

    def write(self, path, text):
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text.encode() if isinstance(text, str) else text)
        return target


@pytest.fixture
def akm(run, tmp_path):
    (tmp_path / "bundle").mkdir()
    return Akm(run, tmp_path)

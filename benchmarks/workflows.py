"""The workflows that the benchmarks run: chains, maps and wide graphs of `true`, as source text."""

from __future__ import annotations


def akm_chain(count: int) -> str:
    """A spine of `count` steps, each after the one before it."""
    steps = "".join(f"  - id: s{n}\n    unit: {{ exec: {{ command: ['true'] }} }}\n" for n in range(1, count + 1))
    body = "".join(f"## s{n}\n\nRun it.\n\n" for n in range(1, count + 1))
    return f"---\ntype: workflow\nsteps:\n{steps}---\n\n{body}"


def akm_map(width: int) -> str:
    """One `true` for each item of the param `items`, at most `width` at a time."""
    return (
        "---\ntype: workflow\nparams:\n  items: { type: array }\nsteps:\n"
        f"  - id: each\n    map:\n      over: params.items\n      concurrency: {width}\n"
        "      unit: { exec: { command: ['true'] } }\n---\n\n## each\n\nRun it.\n"
    )


def akm_broken_map(width: int) -> str:
    """A map in which the item 1 fails until the file `mended` is there."""
    command = "[sh, -c, '[ \"$AKM_ITEM\" != 1 ] || [ -e mended ]']"
    return akm_map(width).replace("['true']", command)


def orun_chain(count: int) -> str:
    needs = "".join(f"  - {{ name: s{n}, needs: [s{n - 1}], run: ['true'] }}\n" for n in range(2, count + 1))
    return f"{_ORUN}metadata: {{ name: chain }}\nsteps:\n  - {{ name: s1, run: ['true'] }}\n{needs}"


def orun_wide(count: int, width: int) -> str:
    """`count` steps that do not depend on each other, `width` at a time."""
    steps = "".join(f"  - {{ name: s{n}, run: ['true'] }}\n" for n in range(1, count + 1))
    return f"{_ORUN}metadata: {{ name: wide }}\nmaxParallel: {width}\nsteps:\n{steps}"


_ORUN = "apiVersion: orun.dev/v1\nkind: Workflow\n"

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


def orun_cel_chain(count: int) -> str:
    """A chain in which each command prints by CEL what the one before it printed, which is a computed output."""
    steps = "".join(
        f"  - name: s{n}\n    needs: [s{n - 1}]\n"
        f"    run: [/bin/echo, '{{{{ steps.s{n - 1}.outputs.said }}}}']\n"
        f"    outputs: {{ said: stdout.trim() }}\n"
        for n in range(2, count + 1)
    )
    first = "  - { name: s1, run: [/bin/echo, '{{ inputs.word }}'], outputs: { said: stdout.trim() } }\n"
    return f"{_ORUN}metadata: {{ name: chain }}\n{_WORD}steps:\n{first}{steps}"


def orun_cel_wide(count: int, width: int) -> str:
    """Independent steps, each with an interpolated word and a computed output."""
    steps = "".join(
        f"  - name: s{n}\n    run: [/bin/echo, '{{{{ inputs.word + string({n}) }}}}']\n"
        f"    outputs: {{ said: stdout.trim() }}\n"
        for n in range(1, count + 1)
    )
    return f"{_ORUN}metadata: {{ name: wide }}\n{_WORD}maxParallel: {width}\nsteps:\n{steps}"


def orun_printing(python: str, size: int) -> str:
    """One command that prints `size` bytes in lines of three characters."""
    code = f"print(*['abc'] * {size // 4}, sep=chr(10), end='')"
    return f'{_ORUN}metadata: {{ name: print }}\nsteps:\n  - {{ name: p, run: ["{python}", "-c", "{code}"] }}\n'


_WORD = "inputs: { word: { type: string, default: ab } }\n"
_ORUN = "apiVersion: orun.dev/v1\nkind: Workflow\n"

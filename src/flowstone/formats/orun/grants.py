"""Which connections each step and output uses, so that a missing grant is found before a run starts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from flowstone.expr.cel import EVERYWHERE, CompiledCel, compile_cel
from flowstone.expr.templates import OPEN, parse_template
from flowstone.formats.orun.document import Document, Named, Step
from flowstone.formats.orun.expressions import Authored, texts_of


def connections_of_step(step: Step, document: Document) -> tuple[str, ...]:
    """The declared connections that a step sends or reads in an expression, in order of first use."""
    own = () if step.connection is None else (step.connection.text,)
    return tuple(dict.fromkeys((*own, *_read(texts_of(step), document))))


def connections_of_output(output: Named, document: Document) -> tuple[str, ...]:
    """The declared connections that an output of the workflow reads."""
    return tuple(dict.fromkeys(_read([Authored(output.name, output.text, EVERYWHERE, False)], document)))


def _read(texts: Iterable[Authored], document: Document) -> Iterator[str]:
    """An expression that reads `connections` as a whole, or by a computed name, reads each of them."""
    declared = tuple(connection.name for connection in document.connections)
    if not declared:
        return
    for authored in texts:
        for compiled in _compiled(authored):
            for read in compiled.reads:
                if read.root == "connections":
                    yield from declared if read.name is None else (read.name,)


def _compiled(authored: Authored) -> Iterator[CompiledCel]:
    text = authored.text.text
    if not authored.template:
        found = compile_cel(text.strip(), authored.environment)
        if isinstance(found, CompiledCel):
            yield found
    elif OPEN in text:
        yield from (compiled for compiled, _ in parse_template(text, authored.environment).compiled)

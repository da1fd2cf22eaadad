"""The subset of Jinja that templates may use, which bounds their run time and output.

Jinja is a programming language: even in its sandbox, a template of three lines can loop for a year, or double
a text until memory is full. A prompt needs only variables, conditions, and loops over its variables.
"""

from collections.abc import Iterator

from jinja2 import nodes

from cardiolens.base.errors import InputError

_LEGAL: tuple[type[nodes.Node], ...] = (
    nodes.Template,
    nodes.Output,
    nodes.TemplateData,
    nodes.Name,
    nodes.Const,
    nodes.List,
    nodes.Tuple,
    nodes.Getattr,
    nodes.Getitem,
    nodes.Slice,
    nodes.If,
    nodes.For,
    nodes.CondExpr,
    nodes.Compare,
    nodes.Operand,
    nodes.And,
    nodes.Or,
    nodes.Not,
    nodes.Add,
    nodes.Sub,
    nodes.Neg,
    nodes.Keyword,
    nodes.Concat,
    nodes.Filter,
    nodes.Test,
)
_FILTERS = frozenset(
    (
        "capitalize", "count", "d", "default", "first", "int", "join", "last", "length", "list",
        "lower", "reverse", "sort", "string", "title", "trim", "truncate", "unique", "upper",
        "wordcount",
    )
)  # fmt: skip
_TESTS = frozenset(
    (
        "defined", "divisibleby", "eq", "equalto", "even", "false", "ge", "gt", "in", "le", "lt", "ne",
        "none", "number", "odd", "sameas", "string", "true", "undefined",
    )
)  # fmt: skip
_NESTED_LOOPS = 2
_NESTED_JOINS = 1  # each multiplies the length of a text
_LONGEST_SEPARATOR = 16  # characters


def check_language(template: nodes.Template, where: str) -> None:
    """Raise InputError for a template that uses Jinja outside the subset."""
    for refused in _refused(template, loops=0, joins=0):
        raise InputError(
            f"{where}: uses {refused}, which prompts do not need; use variables, if, for over the "
            f"variables ({_NESTED_LOOPS} loops deep), + - ~, comparisons, and the filters "
            f"{', '.join(sorted(_FILTERS))}"
        )


def _has_short_arguments(call: nodes.Filter) -> bool:
    values = [*call.args, *(keyword.value for keyword in call.kwargs)]
    short = (
        isinstance(value, nodes.Const) and len(str(value.value)) <= _LONGEST_SEPARATOR for value in values
    )
    return call.dyn_args is None and call.dyn_kwargs is None and all(short)


def _refused(node: nodes.Node, loops: int, joins: int) -> Iterator[str]:
    """Yield what a template uses outside the subset, in Jinja's terms."""
    match node:
        case nodes.For(recursive=True):
            yield "a recursive loop"
        case nodes.For():
            loops += 1
            if loops > _NESTED_LOOPS:
                yield f"{loops} nested loops"
        case nodes.Filter(name=name):
            if name not in _FILTERS:
                yield f"the filter {name!r}"
            joins += name == "join"
            if joins > _NESTED_JOINS:
                yield "a join of a join"
            if name == "join" and not _has_short_arguments(node):
                yield f"a join by anything but a literal of at most {_LONGEST_SEPARATOR} characters"
        case nodes.Test(name=name) if name not in _TESTS:
            yield f"the test {name!r}"
        case _ if not isinstance(node, _LEGAL):
            yield f"{type(node).__name__.lower()!r}"
    for child in node.iter_child_nodes():
        yield from _refused(child, loops, joins)

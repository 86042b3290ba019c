"""No example of a docstring rests on the last bit of a number, which another processor computes differently.

A line that compares on purpose, or whose numbers are constants, ends with ``# exact``.
"""

import ast
import doctest
import re
from pathlib import Path

SRC = Path(__file__).resolve().parents[1] / "src"
# What a string holds was formatted; a tensor prints four digits.
FORMATTED = re.compile(r"'[^']*'|tensor\(.*\)", re.DOTALL)
NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d*(?:e[+-]?\d+)?|e[+-]?\d+)(?!\w)")


def compares(source):
    """Whether the line asks if two things are the same to the bit."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare) and any(isinstance(operator, ast.Eq | ast.NotEq) for operator in node.ops):
            return True
        if isinstance(node, ast.Attribute) and node.attr in {"equal", "array_equal", "equals"}:
            return True
    return False


def prints_all_digits(source, printed):
    """Whether a number that is no short binary fraction, as 0.25 is, is printed without being rounded."""
    if "round" in source or re.search(r":\.\d+[efg]", source) or printed.startswith("Traceback"):
        return False
    return any((float(number) * 1024) % 1 for number in NUMBER.findall(FORMATTED.sub("", printed)))


def fragile(module):
    """The lines of a module's examples that another processor could turn, as ``line: source``."""
    for node in ast.walk(ast.parse(module)):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            continue
        for example in doctest.DocTestParser().get_examples(ast.get_docstring(node, clean=False) or ""):
            if "# exact" in example.source:
                continue
            if compares(example.source) or prints_all_digits(example.source, example.want):
                yield f"{node.body[0].lineno + example.lineno}: {example.source.strip()}"


def test_examples_compare_and_print_rounded_numbers(pytestconfig):
    assert "NUMBER" in pytestconfig.getini("doctest_optionflags")
    modules = sorted(SRC.rglob("*.py"))
    assert len(modules) > 100
    assert not [f"{path.relative_to(SRC)}:{line}" for path in modules for line in fragile(path.read_text("utf-8"))]


def test_fragile_examples_are_found():
    lines = ["a == b", "torch.equal(a, b)", "a == b  # exact", "x", "round(x, 3)", "f'{x:.3f}'", "y", "T"]
    printed = ["True", "True", "True", "[0.1, 1]", "0.333", "'0.333'", "0.25", "tensor([0.3333])"]
    examples = "\n".join(f">>> {line}\n{shown}" for line, shown in zip(lines, printed, strict=True))
    assert list(fragile(f'"""\n{examples}\n"""')) == ["2: a == b", "4: torch.equal(a, b)", "8: x"]

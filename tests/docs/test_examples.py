"""The examples of README.md and docs/ are run, so that they stay true.

In a document, from top to bottom and with one state:

- a ``python`` block runs as a module would; it may await at the top level. Let it assert what the text claims.
- a ``python`` block that starts with ``>>>`` is a doctest.
- a ``console`` block runs its ``$ `` lines in a shell, in a scratch folder that belongs to the document and shows the files of
  the repository. Each must end with status 0, and where output follows it must match: ``...`` alone on a line stands for any
  lines, ``...`` in a line for any text, any run of blanks for any other. A line that ends in `` &`` stays in the background
  until the document ends; `kubemini serve` is waited for.
- ``<!-- skip: next -->`` before a block leaves it out.

Blocks in other languages are text.
"""

import asyncio
import doctest
import inspect
import re
from ast import PyCF_ALLOW_TOP_LEVEL_AWAIT
from pathlib import Path

import pytest
from sybil import Document, Example
from sybil.parsers.markdown import CodeBlockParser, SkipParser

from tests.clients.binaries import Unavailable, binary
from tests.docs.console import Console

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


class Runner:
    """Evaluates the blocks of one document."""

    def __init__(self, folder: Path) -> None:
        self.console = Console(folder)
        self.loop = asyncio.Runner()

    def run(self, path: Path) -> int:
        """Run every example of a document in order; return how many there were. Raise what the first failing one raises."""
        document = Document.parse(str(path), CodeBlockParser("python", self.python), CodeBlockParser("console", self.shell), SkipParser())
        document.namespace["__name__"] = path.stem
        count = 0
        for example in document.examples():
            example.evaluate()
            count += 1
        return count

    def close(self) -> None:
        """Stop the loop and everything in the background."""
        self.loop.close()
        self.console.close()

    def python(self, example: Example) -> None:
        """Run a Python block in the document's namespace."""
        if example.parsed.startswith(">>>"):
            for part in doctest.DocTestParser().get_examples(str(example.parsed)):
                self._doctest(example, part)
            return
        source = "\n" * example.line + str(example.parsed)  # so that a traceback names the document's line
        code = compile(source, example.path, "exec", flags=PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        pending = eval(code, example.namespace)
        if code.co_flags & inspect.CO_COROUTINE:
            self.loop.run(pending)

    def shell(self, example: Example) -> str:
        """Run a console block."""
        return self.console.run(str(example.parsed))

    def _doctest(self, example: Example, part: doctest.Example) -> None:
        test = doctest.DocTest([part], example.namespace, example.path, example.path, example.line, None)
        runner = doctest.DebugRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
        runner.run(test, clear_globs=False)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_examples_hold(path: Path, tmp_path: Path) -> None:
    """Each Python and console block of a document does what the document says."""
    for name in re.findall(r"^\$ (?:.*[|;&] *)?(kubectl|helm)\b", path.read_text(), re.MULTILINE):
        try:
            binary(name)
        except Unavailable as reason:
            pytest.skip(str(reason))
    runner = Runner(tmp_path)
    try:
        runner.run(path)
    finally:
        runner.close()


GOOD = """
# Title

```python
import asyncio
x = await asyncio.sleep(0, 41)
```

```python
>>> x + 1
42
```

<!-- skip: next -->

```python
raise RuntimeError("left out")
```

```console
$ echo "one
> two"; echo three
one
...
three
$ test -f README.md && sleep 100 &
```
"""


def test_blocks_share_a_state(tmp_path: Path) -> None:
    """Blocks run in order, see each other's names, may await, and are left out where a comment says so."""
    (path := tmp_path / "good.md").write_text(GOOD)
    runner = Runner(tmp_path)
    try:
        assert runner.run(path) == 5
        assert [process.poll() for process in runner.console.background] == [None]
    finally:
        runner.close()


@pytest.mark.parametrize(
    "block,says",
    [
        ("```python\nassert 1 == 2, 'two'\n```", "two"),
        ("```python\n>>> 1 + 1\n3\n```", "DocTest"),
        ("```console\n$ false\n```", "ended with status 1"),
        ("```console\n$ echo no\nyes\n```", "should print\nyes\nand printed\nno"),
        ("```console\n$ kubemini serve --no-such-flag &\n```", "does not serve"),
    ],
    ids=["assertion", "doctest", "status", "output", "server"],
)
def test_untrue_examples_fail(block: str, says: str, tmp_path: Path) -> None:
    """A block whose claim is wrong raises."""
    (path := tmp_path / "bad.md").write_text(block)
    runner = Runner(tmp_path)
    try:
        with pytest.raises((AssertionError, doctest.DocTestFailure), match=re.escape(says)):
            runner.run(path)
    finally:
        runner.close()

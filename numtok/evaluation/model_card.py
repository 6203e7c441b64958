"""The card of a model that leaves the store: what it is, what was measured, how to ask it."""

from collections.abc import Sequence

from numtok.encoding.texts import Texts
from numtok.encoding.whole_text import in_text
from numtok.evaluation.report_files import Evaluation
from numtok.registry import spec_of
from numtok.reports import Figure
from numtok.training.model_files import LoadedModel
from numtok.version import __version__

_CARD = """\
---
library_name: {library}
tags:
- numtok
- numbers
---

# {name}

{what}, trained by numtok {version}: {samples:,} rows, {tokens:,} tokens in {steps:,} steps;
{parameters:,} parameters. Its version is `{ref}`.

| | |
|---|---|
{configuration}

{measured}
{usage}"""

_ALONE = """\
transformers loads it by itself. A row of text is in the written form of its scheme: a number is its
tokens{example}.

```python
from transformers import AutoModelForCausalLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("FOLDER")
model = AutoModelForCausalLM.from_pretrained("FOLDER")
rows = tokenizer({prompt!r}, return_tensors="pt")
print(tokenizer.decode(model.generate(**rows, max_new_tokens=16, do_sample=False)[0]))
```
"""

_OWN = """\
Texts are given as they are, and numbers are found in them.

```python
import numtok.hf  # pip install "numtok[hf]"
from transformers import AutoModel, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("FOLDER")
model = AutoModel.from_pretrained("FOLDER")
print(model.predict([{asked!r}], tokenizer))
```
"""


def model_card(loaded: LoadedModel, evaluations: Sequence[Evaluation], *, alone: bool) -> str:
    """Markdown; ``alone``: transformers loads the model without numtok."""
    model, trained, codec = loaded.model, loaded.trained, loaded.codec
    kind = "classifier" if model.settings.classes else "model"
    sight = "causal" if model.objective.causal else "masked"
    if alone:
        written = "" if in_text(codec.scheme) else f", `{_number(loaded)}`"
        prompt = "..." if in_text(codec.scheme) else f"... {_number(loaded)} ..."
        usage = _ALONE.format(example=written, prompt=prompt)
    else:
        usage = _OWN.format(asked="..." if model.settings.classes else "... [?] ...")
    return _CARD.format(
        library="transformers" if alone else "numtok",
        name=loaded.artifact.name,
        what=f"A {sight} {kind} of texts with numbers in `{spec_of(codec.scheme)}`",
        version=__version__,
        samples=trained.samples,
        tokens=trained.tokens,
        steps=trained.steps,
        parameters=model.parameter_counts()[0],
        ref=loaded.artifact.ref,
        configuration="\n".join(
            f"| {key} | `{value}` |" for key, value in trained.configuration.items()
        ),
        measured=_measured(evaluations),
        usage=usage,
    )


def _number(loaded: LoadedModel) -> str:
    """-60.2 in the written form."""
    codec, texts = loaded.codec, Texts.of(["-60.2"])
    return codec.written_number(codec.encode(texts, codec.find(texts)).tokens)


def _measured(evaluations: Sequence[Evaluation]) -> str:
    """A table for each split that reports are of."""
    if not evaluations:
        return "It has not been evaluated: there is no report of it.\n"
    parts = []
    for one in sorted(evaluations, key=lambda one: (one.report.split, one.ref)):
        report = one.report
        rows = [f"| {name} | {_figure(found)} |" for name, found in report.metrics.items()]
        parts.append(
            f"On the split `{report.split}` of `{report.data}`, {report.numbers:,} "
            f"{report.measures}, with intervals of 95%:\n\n| metric | |\n|---|---|\n"
            + "\n".join(rows)
            + "\n"
        )
    return "\n".join(parts)


def _figure(found: Figure) -> str:
    if found.value is None:
        return "-"
    if found.low is None or found.high is None:
        return f"{found.value:.4g}"
    return f"{found.value:.4g} [{found.low:.4g}, {found.high:.4g}]"

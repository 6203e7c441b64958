"""Model card for an exported model: description, metrics and usage."""

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
transformers loads this model without numtok. Text must be in the written form of the scheme, in
which a number is written as its tokens{example}.

```python
from transformers import AutoModelForCausalLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("FOLDER")
model = AutoModelForCausalLM.from_pretrained("FOLDER")
rows = tokenizer({prompt!r}, return_tensors="pt")
print(tokenizer.decode(model.generate(**rows, max_new_tokens=16, do_sample=False)[0]))
```
"""

_OWN = """\
Pass plain text; numtok finds the numbers in it.

```python
import numtok.hf  # pip install "numtok[hf]"
from transformers import AutoModel, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("FOLDER")
model = AutoModel.from_pretrained("FOLDER")
print(model.predict([{text!r}], tokenizer))
```
"""


def model_card(loaded: LoadedModel, evaluations: Sequence[Evaluation], *, alone: bool) -> str:
    """Return the model card as Markdown.

    ``evaluations`` are the reports whose metrics are listed. If ``alone`` is set, the usage example
    loads the model with the transformers library only, without numtok.
    """
    model, trained, codec = loaded.model, loaded.trained, loaded.codec
    kind = "classifier" if model.settings.classes else "model"
    sight = "causal" if model.objective.causal else "masked"
    if alone:
        written = "" if in_text(codec.scheme) else f", `{_number(loaded)}`"
        prompt = "..." if in_text(codec.scheme) else f"... {_number(loaded)} ..."
        usage = _ALONE.format(example=written, prompt=prompt)
    else:
        usage = _OWN.format(text="..." if model.settings.classes else "... [?] ...")
    return _CARD.format(
        library="transformers" if alone else "numtok",
        name=loaded.artifact.name,
        what=f"A {sight} {kind} for texts with numbers encoded as `{spec_of(codec.scheme)}`",
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
    """Return -60.2 in the written form of the scheme."""
    codec, texts = loaded.codec, Texts.of(["-60.2"])
    return codec.written_number(codec.encode(texts, codec.find(texts)).tokens)


def _measured(evaluations: Sequence[Evaluation]) -> str:
    """Return one Markdown table of metrics per report."""
    if not evaluations:
        return "The model has not been evaluated.\n"
    parts = []
    for evaluation in sorted(
        evaluations, key=lambda evaluation: (evaluation.report.split, evaluation.ref)
    ):
        report = evaluation.report
        rows = [f"| {name} | {_figure(figure)} |" for name, figure in report.metrics.items()]
        parts.append(
            f"On the split `{report.split}` of `{report.data}`, {report.numbers:,} "
            f"{report.measures}, with 95% intervals:\n\n| metric | |\n|---|---|\n"
            + "\n".join(rows)
            + "\n"
        )
    return "\n".join(parts)


def _figure(figure: Figure) -> str:
    if figure.value is None:
        return "-"
    if figure.low is None or figure.high is None:
        return f"{figure.value:.4g}"
    return f"{figure.value:.4g} [{figure.low:.4g}, {figure.high:.4g}]"

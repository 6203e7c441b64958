"""Logits processor that makes generative models from transformers write well-formed numbers."""

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import LogitsProcessor

from numtok.encoding.number_pattern import NumberPattern, TokenStates
from numtok.encoding.token_texts import token_texts
from numtok.errors import UsageError
from numtok.library.arguments import typed

_ENDED, _BROKEN = -1, -2  # states of rows after the number, and of rows that are not a number


class NumberLogitsProcessor(LogitsProcessor):
    """Logits processor that restricts the generated text to one number, followed by a stop token.

    The number may be preceded by a space. After the stop token, the text is unrestricted: to end a
    row at a token other than EOS, also pass that token to ``generate`` as ``eos_token_id``. Prompts
    may be padded on the left. Sampling and beam search are supported, and a processor can be
    reused.

    Parameters
    ----------
    tokenizer : tokenizer
        The model's tokenizer, from transformers or the tokenizers library.
    prompt_length : int
        Number of tokens before the number, including padding: ``inputs.input_ids.shape[1]``, or 1
        for an encoder-decoder model. To reuse the processor for other prompts, set this attribute.
    min_digits, max_digits : int, default 1 and None
        Number of digits before the decimal point. None means no limit.
    min_decimals, max_decimals : int, default 0 and None
        Number of digits after the decimal point; with a maximum of 0, numbers have no point.
    signs : str, default '-'
        Signs that a number may begin with; '' allows no sign.
    groups, exponent, percent : bool, default False
        Allow commas between groups of thousands, an exponent, and a percent sign.
    stop : int, str or a sequence of these, optional
        Tokens that end the number: their ids, texts, or names in the vocabulary. Default: the
        tokenizer's EOS token.

    Raises
    ------
    UsageError
        If the tokenizer's tokens cannot spell any allowed number, if ``stop`` is not a token, or
        if a stop token could continue the number.

    Examples
    --------
    >>> inputs = tokenizer(["2 + 3 =", "10 + 4 ="], padding=True, return_tensors="pt")
    >>> processor = NumberLogitsProcessor(
    ...     tokenizer, prompt_length=inputs.input_ids.shape[1], max_digits=3, max_decimals=2
    ... )
    >>> model.generate(
    ...     **inputs, logits_processor=[processor], max_new_tokens=processor.max_new_tokens
    ... )
    """

    @typed
    def __init__(
        self,
        tokenizer: Any,
        *,
        prompt_length: int,
        min_digits: int = 1,
        max_digits: int | None = None,
        min_decimals: int = 0,
        max_decimals: int | None = None,
        signs: str = "-",
        groups: bool = False,
        exponent: bool = False,
        percent: bool = False,
        stop: Any = None,
    ) -> None:
        self.prompt_length = prompt_length
        self._pattern = NumberPattern(
            min_digits=min_digits,
            max_digits=max_digits,
            min_decimals=min_decimals,
            max_decimals=max_decimals,
            signs=signs,
            groups=groups,
            exponent=exponent,
            percent=percent,
        )
        texts = token_texts(tokenizer)
        self._states = TokenStates.of(self._pattern, texts)
        self._stops = _stops(tokenizer, texts, stop)
        self._check_stops(texts)
        self._size = 1 + max(*self._stops, *(max(after, default=0) for after in self._states.after))
        self._allowed = self._masks()

    @property
    def max_new_tokens(self) -> int | None:
        """Number of tokens that suffices for any allowed number and the stop token; None if the
        length of numbers is not limited. With fewer tokens, a number may be cut off."""
        return None if self._pattern.longest is None else self._pattern.longest + 1

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """Return ``scores`` [R, V] with -inf for tokens that may not follow ``input_ids`` [R, T].

        Raises UsageError if the rows do not match ``prompt_length``, or if the scores have fewer
        columns than the tokenizer has tokens.
        """
        if not 0 <= self.prompt_length <= input_ids.shape[1]:
            raise UsageError(
                f"prompt_length is {self.prompt_length}, but the rows have {input_ids.shape[1]} "
                "tokens. Pass the length of the padded prompts, inputs.input_ids.shape[1]"
            )
        if scores.shape[1] < self._size:
            raise UsageError(
                f"tokenizer has tokens up to id {self._size - 1:,}, but the model predicts "
                f"{scores.shape[1]:,}. Pass the tokenizer of this model"
            )
        rows = [self._state(row) for row in input_ids[:, self.prompt_length :].tolist()]
        # Single rows may be broken, because beam search also keeps candidates of score -inf.
        if all(state == _BROKEN for state in rows):
            raise UsageError(
                f"the text after prompt_length={self.prompt_length} tokens is not a number. Pass "
                "the length of the padded prompts, inputs.input_ids.shape[1]"
            )
        self._allowed = self._allowed.to(scores.device)
        states = torch.tensor(rows, device=scores.device)
        allowed = self._allowed[states.clamp(min=0)]
        allowed = torch.nn.functional.pad(allowed, (0, scores.shape[1] - self._size))
        return scores.masked_fill(~(allowed | (states < 0)[:, None]), -torch.inf)

    def _state(self, tokens: Sequence[int]) -> int:
        """Return the state after the generated tokens of a row."""
        state = 0
        for token in tokens:
            if token in self._stops and self._states.may_end[state]:
                return _ENDED
            if token not in self._states.after[state]:
                return _BROKEN
            state = self._states.after[state][token]
        return state

    def _masks(self) -> Tensor:
        """Return whether each token is allowed in each state, bool[states, size]."""
        allowed = torch.zeros(len(self._states.after), self._size, dtype=torch.bool)
        for state, after in enumerate(self._states.after):
            allowed[state, [*after]] = True
            if self._states.may_end[state]:
                allowed[state, [*self._stops]] = True
        return allowed

    def _check_stops(self, texts: Sequence[str | None]) -> None:
        states = zip(self._states.after, self._states.may_end, strict=True)
        unclear = {token for after, may_end in states if may_end for token in after} & self._stops
        if unclear:
            raise UsageError(
                f"stop {texts[min(unclear)]!r} may also continue the number. Use another token, or "
                "exclude it from numbers, as max_decimals=0 excludes a point"
            )


def _stops(tokenizer: Any, texts: Sequence[str | None], stop: Any) -> set[int]:
    """Return the ids of the stop tokens."""
    if stop is None and (stop := getattr(tokenizer, "eos_token_id", None)) is None:
        raise UsageError("tokenizer has no EOS token. Pass stop, the tokens that end the number")
    found, names = set(), tokenizer.get_vocab()
    is_single = isinstance(stop, str) or not isinstance(stop, Iterable)
    for one in [stop] if is_single else stop:
        same = [token for token, text in enumerate(texts) if text == one]
        if isinstance(one, str) and one in names:
            same.append(names[one])  # special tokens have no text
        if isinstance(one, int) and not isinstance(one, bool) and one >= 0:
            same = [one]
        if not same:
            raise UsageError(
                f"stop must be ids or texts of single tokens (got {one!r}). The tokenizer has no "
                "such token"
            )
        found.update(same)
    return found

"""numtok with transformers: its encodings in a ``Trainer``, and its models by ``from_pretrained``.

Once this is imported, ``AutoTokenizer``, ``AutoModel`` and ``AutoModelForCausalLM`` load what
``numtok export MODEL --format transformers`` writes. docs/guide/library.md has all of it.

model.py      a trained model as a class of transformers, with its config
tokenizer.py  texts with numbers to tokens and values, as a tokenizer of transformers
trainer.py    a collator and a model for transformers.Trainer
"""

from numtok.errors import needing

with needing("numtok.hf", "transformers"):
    from transformers import AutoConfig, AutoModel, AutoModelForCausalLM, AutoTokenizer

from numtok.hf.model import NumtokConfig as NumtokConfig
from numtok.hf.model import NumtokForCausalLM as NumtokForCausalLM
from numtok.hf.model import NumtokModel as NumtokModel
from numtok.hf.tokenizer import NumtokTokenizer as NumtokTokenizer
from numtok.hf.trainer import NumberCollator as NumberCollator
from numtok.hf.trainer import NumberModel as NumberModel

AutoConfig.register(NumtokConfig.model_type, NumtokConfig)
AutoModel.register(NumtokConfig, NumtokModel)
AutoModelForCausalLM.register(NumtokConfig, NumtokForCausalLM)
AutoTokenizer.register(NumtokConfig, NumtokTokenizer)

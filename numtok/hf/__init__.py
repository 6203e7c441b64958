"""Integration with transformers: train on numtok encodings with ``Trainer``, load models with
``from_pretrained``, and generate well-formed numbers with ``generate``.

Importing this module lets ``AutoTokenizer``, ``AutoModel`` and ``AutoModelForCausalLM`` load the
folders that ``numtok export MODEL --format transformers`` writes. See
docs/how-to/python-commands.md.

logits.py     a logits processor that makes any model generate well-formed numbers
model.py      trained models as transformers classes, and their configuration
tokenizer.py  a transformers tokenizer for texts with numbers
trainer.py    a collator and a model for transformers.Trainer
"""

from numtok.errors import needing

with needing("numtok.hf", "transformers"):
    from transformers import AutoConfig, AutoModel, AutoModelForCausalLM, AutoTokenizer

from numtok.hf.logits import NumberLogitsProcessor as NumberLogitsProcessor
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

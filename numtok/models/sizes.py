"""Named sizes of transformers, in a module that does not import PyTorch."""

PRESETS = {
    # About 0.8, 4.7 and 25 million parameters in the blocks.
    "nano": "transformer,layers=4,heads=4,width=128,learning_rate=2e-3",
    "micro": "transformer,layers=6,heads=8,width=256,learning_rate=5e-4",
    "small": "transformer,layers=8,heads=8,width=512,learning_rate=3e-4",
    # The paper's: 6 layers, 6 heads, width 768, two-layer heads (xVal, Appendix A; public code).
    "xval": "transformer,layers=6,heads=6,width=768,context=1024,dropout=0.1,head_layers=2,"
    "learning_rate=1e-4",
    # The smallest GPT-2 (Radford et al. 2019).
    "gpt2": "transformer,layers=12,heads=12,width=768,context=1024,dropout=0.1,tied=yes,"
    "learning_rate=2.5e-4",
}

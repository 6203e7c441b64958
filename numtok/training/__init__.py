"""Training: steps, checkpoints, curricula, and model files.

adamw.py                the AdamW optimizer
checkpoint.py           checkpoints, written atomically
curriculum.py           training phases, and the rows of each step
device.py               devices: names, speed, memory
examples.py             training and validation batches, and exact-match answers
features.py             table columns to network inputs, with constants from the train split
launch.py               starting and watching ranks on this machine
log.py                  the training log, and its TensorBoard event files
loop.py                 the training loop for texts: budget, validation, speed, traces
model_files.py          reading and writing text and table models
model_json.py           the contents of ``model.json``
ranks.py                processes that train one model together: replicated or sharded
resolved_table.py       the options of a table run, with every part built
resolved_texts.py       the options of a text run, with every part built
run.py                  what both kinds of run share: checkpoints, signals, log, timing
table_folds.py          fitting one model per fold of a table
text_learner.py         encoded splits to the files of a text model
trained_table.py        fitting a table model, and the fitted model
trainer.py              training steps and their state
transformers_folder.py  exporting a model to a folder that transformers loads
warm_start.py           starting from the weights of another model
weights.py              reading and writing model weights; reading validates everything
"""

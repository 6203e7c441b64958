"""Training of text models and table models.

adamw.py                the AdamW optimizer
checkpoint.py           checkpoints of training, written atomically
curriculum.py           training phases, and the rows of each step
device.py               devices: names, thread counts, memory, speed
examples.py             training and validation batches, and exact-match answers
features.py             table columns as network inputs, with constants from the train split
launch.py               starting and watching ranks (training processes) on this machine
log.py                  the training log, and its TensorBoard event files
loop.py                 the training loop of text models: budget, validation, speed, traces
model_files.py          reading and writing text and table models
model_json.py           the contents of ``model.json``
ranks.py                processes that train one model together: replicated or sharded
resolved_table.py       a table run, with defaults filled in and its head, trunk, ... built
resolved_texts.py       a text run, with defaults filled in and its head, embedder, ... built
run.py                  checkpoints, signals, log and timing of a run
table_folds.py          fitting one model per fold of a table
text_learner.py         training a text model on encoded splits, and writing its files
trained_table.py        fitting a table model, and the fitted model
trainer.py              training steps and their state
transformers_folder.py  exporting a model to a folder for the transformers library
warm_start.py           starting from the weights of another model
weights.py              reading and writing model weights; reading validates everything
"""

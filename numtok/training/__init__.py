"""From rows to a model: steps, checkpoints, curricula, and the files of a model.

adamw.py               the optimizer, and its state by parameter
checkpoint.py          where training stands, written whole or not at all
curriculum.py          phases of training, and the rows of each step
device.py              devices: names, speed, memory
examples.py            batches to train on and to validate by, and exact answers
features.py            columns of a table to inputs, with constants of the train split
launch.py              ranks on this machine: started, watched, ended
log.py                 what training logs, read back; the same as event files of TensorBoard
loop.py                training on texts: budget, validation, speed, traces of steps
model_files.py         models of texts and of tables, written and read
model_json.py          what a model file says, of texts or of tables
ranks.py               processes that train one model together: in copies, or in parts
resolved_table.py      the options of a run on a table, with every part built
resolved_texts.py      the options of a run on texts, with every part built
run.py                 a run: what both kinds resolve, checkpoints, signals, log, time
table_folds.py         fitting a model to each fold of a table, in a draft
text_learner.py        from encoded splits to the files of a model of texts, in a draft
trained_table.py       the epochs of fitting a table, and a fitted model with what it needs
transformers_folder.py  a model as a folder that transformers loads
trainer.py             the steps of training, and their state
weights.py             weights of a model, written, and read in full distrust
warm_start.py          a model that starts from the weights of another, or of a pretrained one
"""

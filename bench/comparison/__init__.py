"""Two commits measured against one another, and their answers compared bit for bit: `bench/compare.py`.

`builds` compiles each commit, `inputs` writes what both sides read, `child` is the process that measures one
side and `side` the handle on it, `turns` lets two of them take turns, `verdict` judges the ratios, `report`
prints and writes them. `golden` asks an index everything it can be asked; `golden.json` has its answers.
"""

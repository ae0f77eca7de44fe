"""Compares the speed of two commits, and their answers bit for bit: `bench/compare.py`.

`builds` compiles each commit, `inputs` writes what both sides read, `child` is the process that measures one
side and `side` the handle on it, `turns` lets two of them take turns, `verdict` judges the ratios, `report`
prints and writes them. `golden` runs every kind of query on an index; `golden.json` has the answers.
"""

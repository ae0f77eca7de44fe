"""Measurements that record their circumstances: `tamis bench`, and the parts that experiments share.

`kernel` measures an index on the generated workloads, `environment` says on what machine and commit, `charts`
draws self-contained HTML pages.
"""

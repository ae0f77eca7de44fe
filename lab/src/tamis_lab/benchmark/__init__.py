"""Measurements that carry their circumstances with them: `tamis bench`, and what the experiments share.

`kernel` measures an index on the generated workloads, `environment` says on what machine and commit, `charts`
draws self-contained HTML pages.
"""

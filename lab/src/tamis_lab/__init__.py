"""The laboratory of Tamis: workloads, benchmarks, cost models and experiments, separate from the library.

`workloads` generates subscriptions and events, `benchmark` measures with them, `experiments` reruns tables
and figures of papers, `costs` predicts memory and time, and `simulation` runs a network of brokers in virtual
time. This package uses `tamis`, which does not depend on it: commands are added by entry points.
"""

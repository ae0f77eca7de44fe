"""The laboratory of Tamis: workloads, benchmarks, cost models and experiments, apart from the library itself.

`workloads` generates subscriptions and events, `benchmark` measures with them, `experiments` reruns tables
and figures of papers, `costs` predicts memory and time, and `simulation` runs a network of brokers in virtual
time. This package uses `tamis`, which knows nothing of it: commands are added by entry points.
"""

"""The reference engine: asynchronous barrier snapshotting as Flink describes it.

An executable specification: `core` is the protocol, pure; `simulated` drives it
in virtual time; `defects` are deliberately wrong variants of single decisions;
`batch` executes bounded jobs without any of it but the operators.
"""

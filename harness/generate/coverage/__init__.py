"""Scenarios aimed at a coverage target: a protocol point, a fault, a way of ending."""

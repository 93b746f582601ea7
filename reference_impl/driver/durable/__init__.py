"""What outlives an attempt, as a driver writes and reads it: snapshots, records, logs of channels, transactions.

Writes take time, and faults tear, lose or delay them.
"""

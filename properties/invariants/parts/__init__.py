"""The checks that several invariants share."""

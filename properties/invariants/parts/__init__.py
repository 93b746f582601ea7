"""What several invariants share."""

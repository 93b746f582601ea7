"""Decisions about what is stored: names and files of snapshots, who refers to them, and what begins from them."""

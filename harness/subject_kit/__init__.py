"""For whoever has an engine: an adapter to begin with, its trial, and the list of subjects."""

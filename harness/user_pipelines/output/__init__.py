"""The committed output of a pipeline, read again and again while a run goes on (`reader`), in each of its formats."""

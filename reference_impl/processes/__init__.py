"""The driver for real life: the same core as operating-system processes over TCP, with files and databases that last."""

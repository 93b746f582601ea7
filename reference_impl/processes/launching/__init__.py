"""How the processes of a run are started, signalled, watched and reaped."""

"""The processes of a run: started, killed and watched through a keeper that outlives the harness (`keeper_script`)."""

"""What the engine's machines say to each other and to their drivers: ids, messages, events, effects, states."""

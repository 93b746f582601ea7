"""In-flight data of unaligned checkpoints: barriers that overtake, logs of channels, and when buffers are stored."""

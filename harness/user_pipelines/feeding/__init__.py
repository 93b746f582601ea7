"""How records reach a pipeline: as files, through a topic of Kafka, a socket or a table (`kinds.feeder_of`)."""

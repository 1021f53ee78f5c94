"""A real, one-node Apache Kafka for development and tests; and what a test reads back from it."""

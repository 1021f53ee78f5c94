"""The stream: Kafka records in, entity events out, one checkpoint per micro-batch."""

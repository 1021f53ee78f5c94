"""Tests of the parts together, against a real Apache Kafka."""

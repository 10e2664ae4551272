"""The demo's flights from a Kafka topic instead of landing files."""

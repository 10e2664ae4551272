"""The demo's flights, fed by a Kafka topic instead of landing files."""

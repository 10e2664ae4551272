"""The series of measurements, one module each."""

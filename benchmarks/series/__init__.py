"""The series: what is measured, one module each."""

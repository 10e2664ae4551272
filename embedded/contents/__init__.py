"""What an installation holds of others: a bill of materials, and the file with their licences.

How it gets there is in `millrace.jars.maven_jars` and `embedded/setup.sh`.
"""

"""What the sides agree on: table specs, job arguments, job reports. Frozen, validated at the edge."""

"""Reading spec files and saying all that is wrong with them; `include.catalog` is the way in."""

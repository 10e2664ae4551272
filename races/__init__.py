"""Writers race for one table: does a commit get lost that was acknowledged?"""

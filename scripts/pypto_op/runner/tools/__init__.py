"""What agents may call, under the names of their pages: files, search, shell, skills, and the bundle's own tools."""

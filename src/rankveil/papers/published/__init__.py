"""What the papers print, typed in: facts to compare with, and nothing computed."""

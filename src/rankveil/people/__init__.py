"""What each of the four can do: protector, subject, intruder, user."""

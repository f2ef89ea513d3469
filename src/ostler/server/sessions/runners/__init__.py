"""What runners mean to sessions: which one they are on, which they wait for, and what an earlier link left there."""

"""Take in what others noticed: spans and logs become sealed lines of runs, in the order in which they come."""

"""Read the runs of a server over HTTP: the exact lines, so that whoever asks computes and checks for themselves."""

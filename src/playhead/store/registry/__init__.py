"""What the server keeps beside runs: keys, browser sessions, cassettes, jobs. Nothing of it can be built again."""

"""Other programs that do SAFE's job, or a part of it, to compare speeds with: see bench/against_peers.py."""

"""What a user would run in place of the broker, each as one server and one client: bench/compare.py measures them."""

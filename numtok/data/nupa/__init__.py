"""What is known of NUPA, the benchmark of numbers of the Number Cookbook (Yang et al. 2025)."""

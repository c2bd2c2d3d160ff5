"""The command line: what a person types and sees. It holds no logic, it calls library functions."""

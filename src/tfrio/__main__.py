"""Run the command line as `python -m tfrio`."""

from tfrio.cli.main import run

if __name__ == "__main__":
    run()

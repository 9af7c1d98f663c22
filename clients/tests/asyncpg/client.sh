# shellcheck shell=bash
install() { python_env; }

run() {
    python_env
    PYTHONPATH=.. "$VENV/bin/python" -B test.py
}

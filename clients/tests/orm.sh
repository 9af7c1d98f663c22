# For the client.sh of Python's ORMs: the packages of clients/, built and
# installed as pip does it from PyPI; to be sourced, not run.
# shellcheck shell=bash

# python_package DIRECTORY: installs clients/DIRECTORY into the virtual
# environment that python_env has made, again if a file of it has changed.
# It is built in a copy, since the build writes beside the sources.
python_package() {
    local source=$ROOT/clients/$1 copy state
    state=$(cd "$source" && find . -type f -not -path '*/__pycache__/*' -print0 | sort -z | xargs -0 sha256sum | sha256sum)
    [ "$(cat "$VENV/.$1" 2>/dev/null)" != "$state" ] || return 0
    copy=$(mktemp -d)
    cp -R "$source/." "$copy/" &&
        "$VENV/bin/pip" install --quiet --disable-pip-version-check --no-deps --no-build-isolation --force-reinstall "$copy" &&
        rm -rf "$copy" &&
        printf '%s\n' "$state" >"$VENV/.$1"
}

# python_package_tests DIRECTORY: its own tests, with the installed package.
# One check for each test, and one for all of them.
python_package_tests() {
    local line result=ok
    (cd "$ROOT/clients/$1/tests" && "$VENV/bin/python" -B -m unittest -v) >"$OUT/unittest" 2>&1 || result=failed
    cat "$OUT/unittest"
    while read -r line; do
        case $line in
        *'... ok') check ok "${line%% *}" ;;
        *'... skipped'*) ;;
        *) check failed "$line" ;;
        esac
    done < <(grep -E '^test_.* \.\.\. ' "$OUT/unittest")
    check "$result" "the tests of clients/$1"
}

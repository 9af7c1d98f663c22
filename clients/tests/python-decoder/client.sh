# shellcheck shell=bash
install() { need_packages python3; }

run() {
    printf 'Python %s\n' "$(python3 -c 'import platform; print(platform.python_version())')" >"$OUT/version"
    # shellcheck source=clients/tests/decoder.sh
    . ../decoder.sh
    decoder_inputs | PYTHONPATH=../../python python3 -B decode.py >"$OUT/decoded"
    compare_decoded
    if PYTHONPATH=../../python python3 -B -m doctest readme.txt; then
        check ok 'the refusals of decode()'
    else
        check failed 'the refusals of decode()'
    fi
}

# shellcheck shell=bash
# shellcheck source=clients/tests/node.sh
. ../node.sh

install() { node_env; }

run() {
    node_env
    printf 'Node.js %s\n' "$(node --version)" >"$OUT/version"
    # shellcheck source=clients/tests/decoder.sh
    . ../decoder.sh
    decoder_inputs | node decode.mjs >"$OUT/decoded"
    compare_decoded
    if node --test refusals.mjs; then check ok 'the refusals, the bounds and the texts'; else check failed 'the refusals, the bounds and the texts'; fi
}

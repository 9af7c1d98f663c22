# shellcheck shell=bash
# shellcheck source=clients/tests/node.sh
. ../node.sh

install() { node_env; }

run() { in_node_env node test.mjs; }

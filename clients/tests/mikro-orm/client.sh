# shellcheck shell=bash
# shellcheck source=clients/tests/node.sh
. ../node.sh

# The unit of work inserts 300 rows with a statement.
# shellcheck disable=SC2034
STATEMENTS=7

install() { node_env; }

run() { in_node_env node test.mjs; }

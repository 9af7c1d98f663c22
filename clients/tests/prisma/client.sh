# shellcheck shell=bash
# shellcheck source=clients/tests/node.sh
. ../node.sh

install() { node_env; }

# `prisma migrate` needs a program that its package downloads from elsewhere: the
# tables are made by the SQL of a migration file. `generate` only looks for it.
generate_and_run() {
    PRISMA_SCHEMA_ENGINE_BINARY=$(type -P true) CHECKPOINT_DISABLE=1 \
        "$NODE_ENVIRONMENT/node_modules/.bin/prisma" generate
    node test.ts
}

run() { in_node_env generate_and_run; }

# shellcheck shell=bash
# shellcheck source=clients/tests/node.sh
. ../node.sh

install() { node_env; }

compile_and_run() {
    "$NODE_ENVIRONMENT/node_modules/.bin/tsc" --target es2022 --module nodenext --experimentalDecorators --emitDecoratorMetadata \
        --skipLibCheck --strictPropertyInitialization false entities.ts
    node test.mjs
}

run() { in_node_env compile_and_run; }

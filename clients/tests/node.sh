# For client.sh of the clients in JavaScript; to be sourced, not run.
# shellcheck shell=bash

# node_env: Node.js itself, from PyPI's wheel, and the packages of all of these
# clients. Sets NODE_ENVIRONMENT, and PATH.
node_env() {
    (cd ../node && python_env)
    VENV=$(cd ../node && keyed python requirements.txt)
    PATH=$VENV/bin:$PATH
    NODE_ENVIRONMENT=$(keyed node ../node/package.json ../node/package-lock.json)
    [ ! -e "$NODE_ENVIRONMENT/.complete" ] || return 0
    rm -rf "$NODE_ENVIRONMENT"
    mkdir -p "$NODE_ENVIRONMENT"
    cp ../node/package.json ../node/package-lock.json "$NODE_ENVIRONMENT/"
    # No install scripts: those of Prisma would download programs.
    (cd "$NODE_ENVIRONMENT" && npm ci --ignore-scripts --no-audit --no-fund && touch .complete)
}

# in_node_env PROGRAM ARGUMENTS...: runs it in a copy of this directory that sees
# the packages; so none are installed into the checkout.
in_node_env() {
    node_env
    local copy=$NODE_ENVIRONMENT/tests/${PWD##*/}
    rm -rf "$copy"
    mkdir -p "$copy"
    cp -R . "$copy/"
    cp ../node/report.js "$NODE_ENVIRONMENT/tests/"
    (cd "$copy" && "$@")
}

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
    # Of this run alone: its server's port tells runs apart.
    local copy=$NODE_ENVIRONMENT/runs/$PGPORT-${PWD##*/} status=0
    rm -rf "$copy"
    mkdir -p "$copy/test"
    cp -R . "$copy/test/"
    cp ../node/report.js "$copy/"
    (cd "$copy/test" && "$@") || status=$?
    rm -rf "$copy"
    return "$status"
}

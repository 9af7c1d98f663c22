# shellcheck shell=bash
# Doctrine inserts entities one by one.
# shellcheck disable=SC2034
STATEMENTS=2000

install() { need_packages php-cli php-pgsql php-doctrine-orm; }

run() { php test.php; }

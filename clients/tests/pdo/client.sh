# shellcheck shell=bash
install() { need_packages php-cli php-pgsql; }

run() { php test.php; }

# shellcheck shell=bash
install() { need_packages libdbd-pg-perl; }

run() { perl test.pl; }

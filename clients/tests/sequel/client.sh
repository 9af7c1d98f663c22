# shellcheck shell=bash
install() { need_packages ruby-sequel ruby-pg; }

run() { ruby test.rb; }

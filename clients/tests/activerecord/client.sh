# shellcheck shell=bash
install() { need_packages ruby-activerecord ruby-pg; }

run() { ruby test.rb; }

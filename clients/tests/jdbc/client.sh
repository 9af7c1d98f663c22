# shellcheck shell=bash
install() { need_packages default-jdk-headless libpostgresql-jdbc-java; }

run() { java -cp /usr/share/java/postgresql.jar Test.java; }

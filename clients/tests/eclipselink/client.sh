# shellcheck shell=bash
# Its batches are rewritten by the driver, 128 rows at a time.
# shellcheck disable=SC2034
STATEMENTS=30
CLASSPATH=/usr/share/java/postgresql.jar:/usr/share/java/eclipselink.jar:/usr/share/java/eclipselink-jpa-2.1-spec.jar

install() {
    need_packages default-jdk-headless libpostgresql-jdbc-java libeclipselink-java
    compiled
}

# compiled: sets CLASSES.
compiled() {
    CLASSES=$(keyed eclipselink ./*.java)
    [ ! -e "$CLASSES/Test.class" ] || return 0
    javac -cp "$CLASSPATH" -d "$CLASSES" ./*.java
}

run() {
    compiled
    java -cp "$CLASSES:$PWD:$CLASSPATH" Test
}

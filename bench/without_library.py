#!/usr/bin/env python3
"""What sql/without_library.sql promises, tried on a running server:

    bench/without_library.py PSQL PGBENCH DATABASE [faults concurrent equal published cost indexes takeover]

PSQL and PGBENCH are paths; PGHOST and PGUSER lead to the server. DATABASE is created, and
dropped at the end. `published` also shows that no file of the extension is needed. `equal`, `takeover` and the extension's row of `cost` need the extension.
"""
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

FILE = pathlib.Path(__file__).parent.parent / "sql/without_library.sql"
PSQL, PGBENCH, DATABASE = sys.argv[1:4]
PARTS = sys.argv[4:] or ["faults", "concurrent", "equal", "published", "cost", "indexes", "takeover"]
failed = []


def psql(text, database=DATABASE, *options, check=True):
    done = subprocess.run([PSQL, "-XqAt", "-v", "ON_ERROR_STOP=1", "-d", database, *options, "-f", "-"],
                          input=text, text=True, capture_output=True, cwd=FILE.parent.parent)
    if check and done.returncode != 0:
        raise SystemExit(done.stderr)
    return done.stdout.strip() if done.returncode == 0 else done.stderr.strip()


def report(what, got, expected):
    is_right = got == expected
    print(f"{'ok    ' if is_right else 'WRONG '} {what}: {got}", flush=True)
    if not is_right:
        failed.append(what)


def install(text, node=1, schema="snowflake_sql"):
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as file:
        file.write(text)
        file.flush()
        pathlib.Path(file.name).chmod(0o644)
        subprocess.run([PSQL, "-X", "-d", DATABASE, "-v", f"node={node}", "-v", f"schema={schema}", "-f", file.name],
                       check=True, capture_output=True)


def replaced(text, old, new, count):
    assert text.count(old) == count, (old, text.count(old))
    return text.replace(old, new)


# In the file's copy, the clock is a table. `pauses` is what other sessions draw in the next
# readings of the clock, the first of which is before the draw.
CLOCK = """
SET check_function_bodies = off;
CREATE SCHEMA test;
CREATE TABLE test.clock (at timestamptz, pauses int[]);
INSERT INTO test.clock VALUES ('2027-01-01 00:00:00.5+00', '{}');
CREATE FUNCTION test.clock() RETURNS timestamptz LANGUAGE plpgsql AS $$
DECLARE result timestamptz; draws int;
BEGIN
    SELECT c.pauses[1] INTO draws FROM test.clock AS c;
    IF draws > 0 THEN PERFORM count(nextval('snowflake_sql.ids')) FROM generate_series(1, draws); END IF;
    UPDATE test.clock SET pauses = pauses[2:] RETURNING at INTO result;
    RETURN result;
END $$;
CREATE FUNCTION test.draw(n int) RETURNS void LANGUAGE sql AS $$ SELECT count(nextval('snowflake_sql.ids')) FROM generate_series(1, n) $$;
CREATE FUNCTION test.at(step interval) RETURNS void LANGUAGE sql AS $$ UPDATE test.clock SET at = '2027-01-01 00:00:00.5+00'::timestamptz + step $$;
CREATE TABLE test.ids (id bigint, n bigint);
CREATE FUNCTION test.issue() RETURNS void LANGUAGE sql AS $$
    INSERT INTO test.ids SELECT snowflake_sql.snowflake_nextval(), (SELECT last_value FROM snowflake_sql.ids) $$;
"""
BEHIND = "the clock is behind IDs that may already have been issued"
REPEATS = "SELECT count(*) - count(DISTINCT id) FROM test.ids;"


def fault(what, steps, expected, text=None):
    """The copy of the file starts at the clock of the test, with a mark that fits it."""
    psql(f"DROP DATABASE IF EXISTS {DATABASE}", "postgres")
    psql(f"CREATE DATABASE {DATABASE}", "postgres")
    psql(CLOCK)
    text = replaced(text or FILE.read_text(), "pg_catalog.clock_timestamp()", "test.clock()", 2)
    text = replaced(text, "date_part('epoch', clock_timestamp())", "date_part('epoch', timestamptz '2027-01-01 00:00+00')", 1)
    install(text)
    lines = psql(steps, check=False).splitlines()
    report(what, next((line.split("ERROR:  ")[1] for line in lines if "ERROR:  " in line), lines[-1]), expected)


def faults():
    print("# pauses between the draw and the clock")
    one = "SELECT test.issue();"
    pause = "UPDATE test.clock SET pauses = '{{0,{0}}}';" + one
    naive = replaced(FILE.read_text(), "OPERATOR(pg_catalog.<=) 4095", "OPERATOR(pg_catalog.<=) 9000000", 1)
    fault("65,535 draws in a pause, without the check: repeats", pause.format(65535) + one + REPEATS, "1", naive)
    fault("65,535 draws in a pause", pause.format(65535) + one + REPEATS, "0")
    fault("4,095 draws in a pause and 61,439 in the same tick", pause.format(4095) + "SELECT test.draw(61439);" + one + REPEATS, "0")
    fault("4,095 draws in a pause and 61,440 in the same tick (sharp)", pause.format(4095) + "SELECT test.draw(61440);" + one + REPEATS, "1")
    fault("4,096 draws in a pause: draws again", pause.format(4096) + "SELECT n FROM test.ids", "4099")
    print("# the clock is set back")
    ahead = one + "SELECT test.at('{0}');" + one + "SELECT test.draw({1}); SELECT test.at('0');" + one
    fault("by 5 s, and 65,534 draws", ahead.format("5s", 65534 - 1) + REPEATS, "0")
    fault("by 5 s, and 65,535 draws (sharp)", ahead.format("5s", 65535 - 1) + REPEATS, "1")
    fault("by 6.2 s: refused", ahead.format("6.2s", 0), BEHIND)
    fault("by 7 hours: refused", ahead.format("7h", 0), BEHIND)
    fault("a refused call draws no number", "SELECT test.at('1h');" + one + "SELECT test.at('0');\\set ON_ERROR_STOP 0\n"
          + one * 50 + "SELECT last_value FROM snowflake_sql.ids;", "2")
    print("# setval, which needs UPDATE")
    fault("the numbers set back within a tick", one + "SELECT setval('snowflake_sql.ids', 1);" + one + REPEATS, "1")
    fault("the numbers set back, a tick later", one + "SELECT setval('snowflake_sql.ids', 1); SELECT test.at('2ms');" + one + REPEATS, "0")
    fault("the mark set to the future: refused", "SELECT setval('snowflake_sql.mark', 900000000);" + one,
          BEHIND)
    fault("the mark set back: the next call raises it", one + "SELECT setval('snowflake_sql.mark', last_value - 500) FROM snowflake_sql.mark;"
          + one + "SELECT (SELECT max(id) FROM test.ids) >> 29 > last_value + 7 FROM snowflake_sql.mark", "f")


def fresh(extension=False):
    psql(f"DROP DATABASE IF EXISTS {DATABASE}", "postgres")
    psql(f"CREATE DATABASE {DATABASE}", "postgres")
    install(FILE.read_text())
    if extension:
        psql("CREATE EXTENSION IF NOT EXISTS snowflake")


def pgbench(script, clients, length, beside=lambda: None):
    """Calls `beside` while the clients run. A statement that fails ends the program."""
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as file:
        file.write(script)
        file.flush()
        load = subprocess.Popen([PGBENCH, "-n", "-M", "prepared", "-f", file.name, "-c", str(clients), "-j", "2", length, DATABASE],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        beside()
        output = load.communicate()[0]
        if load.returncode != 0:
            raise SystemExit(output)


def concurrent():
    print("# 8 sessions at once")
    fresh()
    psql("CREATE UNLOGGED TABLE t (id bigint DEFAULT snowflake_sql.snowflake_nextval(), n int)")
    pgbench("INSERT INTO t (n) SELECT 1 FROM generate_series(1, 1000);", 8, "-T10")
    issued, repeats, per_second, lag = psql(
        "SELECT count(*), count(*) - count(DISTINCT id), count(*) / 10, (SELECT last_value FROM snowflake_sql.mark) - (max(id) >> 29) FROM t").split("|")
    report(f"repeats of {issued} IDs, {per_second} a second; the mark is {lag} units above the last", repeats, "0")
    print("     ", "largest number of IDs of a tick:", psql("SELECT max(c) FROM (SELECT count(*) AS c FROM t GROUP BY id >> 22) AS g"))
    report("findings", psql("SELECT count(*) FROM snowflake_sql.snowflake_audit_installation()"), "0")


def equal():
    print("# the same results as the extension, in another time zone and date style")
    fresh(extension=True)
    psql("CREATE TABLE ids AS SELECT (random() * 9223372036854775807::numeric)::bigint AS id FROM generate_series(1, 20000);"
         "CREATE TABLE times AS SELECT timestamptz '1990-01-01' + random() * interval '95 years' AS at FROM generate_series(1, 3000)")
    settings = "SET TimeZone = 'America/St_Johns'; SET DateStyle = 'SQL, DMY'; SET IntervalStyle = 'postgres_verbose'; SET extra_float_digits = -15;"
    for call, source in [
            ("snowflake_decode(id)::text", "ids"), ("snowflake_timestamp(id)", "ids"), ("snowflake_node_id(id)", "ids"),
            ("snowflake_to_text(id)", "ids"), ("snowflake_to_text(id, 'base62')", "ids"),
            ("snowflake_from_text(lower(public.snowflake_to_text(id)))", "ids"), ("snowflake_min_id(at)", "times WHERE at < '2094-09-07'"),
            ("snowflake_max_id(at)", "times"), ("snowflake_max_id_before(at)", "times"),
            ("snowflake_decode(id, name)::text", "public.snowflake_layouts, ids WHERE name <> 'js53'"),
            ("snowflake_max_id(at, name)", "public.snowflake_layouts, times"), ("snowflake_max_id_before(at, name)", "public.snowflake_layouts, times")]:
        report(f"different results of {call}", psql(
            f"{settings} SELECT count(*) FILTER (WHERE public.{call} IS DISTINCT FROM snowflake_sql.{call}) FROM {source}"), "0")


def published():
    """As an ordinary owner. The digests of presets are the same on every server, with the extension or without."""
    print("# published IDs, and 100 of each preset, read by an ordinary owner of the schema")
    psql(f"DROP DATABASE IF EXISTS {DATABASE}", "postgres")
    psql(f"DROP ROLE IF EXISTS {DATABASE}_owner; CREATE ROLE {DATABASE}_owner LOGIN", "postgres")
    psql(f"CREATE DATABASE {DATABASE} OWNER {DATABASE}_owner", "postgres")
    is_installed = psql("SELECT count(*) FROM pg_available_extensions WHERE name = 'snowflake'") != "0"
    administrator = os.environ.get("PGUSER")
    os.environ["PGUSER"] = f"{DATABASE}_owner"
    install(FILE.read_text())
    lines = (FILE.parent.parent / "crates/snowflake-id/tests/data/vectors.tsv").read_text().splitlines()[1:]
    wrong = [line for line in lines for id, layout, at, node, sequence in [line.split("\t")[:5]]
             if psql(f"SELECT d.created_at = '{at}' AND d.node_id = {node} AND d.backend_id = 0 AND d.sequence = {sequence}"
                     f" FROM snowflake_sql.snowflake_decode({id}, '{layout}') AS d") != "t"]
    report(f"of {len(lines)} published IDs, as an ordinary role on {psql('SHOW server_version')}, wrong", wrong, [])
    presets = re.findall(r"\('([a-z0-9-]+)', 'timestamp", FILE.read_text())
    # Multiples of a prime, spread over all IDs of the preset.
    query = ("SET TimeZone = 'UTC'; SET DateStyle = 'ISO'; SELECT md5(string_agg(concat_ws(' ', i.id, d.created_at, d.node_id, d.backend_id, d.sequence), ',' ORDER BY i.id))"
             " FROM (SELECT n * 91111111111111111 & (CASE '{1}' WHEN 'js53' THEN 9007199254740991 ELSE 9223372036854775807 END) AS id"
             " FROM generate_series(1, 100) AS n) AS i, {0}.snowflake_decode(i.id, '{1}') AS d")
    digests = {name: psql(query.format("snowflake_sql", name)) for name in presets}
    print(f"       {len(presets)} presets: {' '.join(digest[:6] for digest in digests.values())}")
    del os.environ["PGUSER"]
    if administrator:
        os.environ["PGUSER"] = administrator
    print(f"       files of the extension on this server: {is_installed}")
    if is_installed:
        psql("CREATE EXTENSION snowflake")
        report("presets that the extension reads otherwise", [name for name in presets if psql(query.format("public", name)) != digests[name]], [])


def defaults():
    """A fresh database, and the ways to make a key in it."""
    fresh()
    has_extension = "ERROR" not in psql("CREATE EXTENSION snowflake; SELECT snowflake_nextval()", check=False)
    psql("CREATE SEQUENCE s")
    tables = {"nextval": "nextval('s')", "sql": "snowflake_sql.snowflake_nextval()", "uuid": "gen_random_uuid()"}
    if has_extension:
        tables["extension"] = "snowflake_nextval()"
    return tables


def keyed(default):
    return f"DROP TABLE IF EXISTS c; CREATE TABLE c (id {'uuid' if 'uuid' in default else 'bigint'} PRIMARY KEY DEFAULT {default}, n int);\n"


def cost():
    print("# nanoseconds of a call, above a constant function: median of 5")
    tables = defaults()
    psql("CREATE FUNCTION nothing() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN 1; END'")
    calls = {call: [] for call in ["pg_backend_pid()", "nothing()", *tables.values()]}
    for _ in range(5):
        for call, times in calls.items():
            times.append(float(psql(f"\\o /dev/null\nSELECT count({call}) FROM generate_series(1, 1000);\n\\o\n"
                                    f"EXPLAIN (ANALYZE, TIMING off, FORMAT json) SELECT count({call}) FROM generate_series(1, 300000)")
                               .split('"Execution Time": ')[1].split("\n")[0]) / 300000 * 1e6)
    base = statistics.median(calls["pg_backend_pid()"])
    for call, times in calls.items():
        print(f"       {call:36} {statistics.median(times) - base:8.0f}")
    print("# COPY of 300,000 rows with a primary key, relative to nextval(): median of 5")
    took = {name: [] for name in tables}
    for _ in range(5):
        for name, default in tables.items():
            got = psql(keyed(default) + "\\timing on\n\\copy c (n) FROM PROGRAM 'seq 300000'\n")
            took[name].append(float(got.split("Time: ")[1].split(" ")[0]))
    for name, times in took.items():
        print(f"       {name:36} {statistics.median(times) / statistics.median(took['nextval']):8.2f}")


def indexes():
    print("# bounds use the key's index")
    fresh()
    psql("CREATE TABLE t AS SELECT snowflake_sql.snowflake_nextval() AS id FROM generate_series(1, 200000); ALTER TABLE t ADD PRIMARY KEY (id); ANALYZE t")
    for condition in ["snowflake_sql.snowflake_between(id, now() - interval '1 h', now() - interval '59 min')",
                      "id >= snowflake_sql.snowflake_min_id(now() + interval '1 h')",
                      "id < snowflake_sql.snowflake_min_id('2026-01-01 00:00+00')",
                      "snowflake_sql.snowflake_between(id, '2026-01-01 00:00+00', '2026-01-02 00:00+00', 'default')"]:
        plan = psql(f"EXPLAIN (COSTS off) SELECT * FROM t WHERE {condition}")
        report(condition, "Index Cond" in plan and "Filter" not in plan, True)
    print("# the key's index after 16 sessions have inserted 400,000 rows in statements of 100")
    for name, default in defaults().items():
        psql(keyed(default))
        pgbench("INSERT INTO c (n) SELECT 1 FROM generate_series(1, 100);", 16, "-t250")
        size = psql("SELECT pg_size_pretty(pg_relation_size('c_pkey'))")
        print(f"       {name:36} {size:>8}")


def takeover():
    """The page's statements as printed, on a table with rows, references and a view."""
    print("# to the extension and back, beside 4 sessions that insert")
    fresh()
    psql("CREATE TABLE parents (id bigint PRIMARY KEY DEFAULT snowflake_sql.snowflake_nextval(), n int);"
         "CREATE TABLE children (id bigint PRIMARY KEY DEFAULT snowflake_sql.snowflake_nextval(), parent bigint NOT NULL REFERENCES parents);"
         "CREATE VIEW latest AS SELECT id, snowflake_sql.snowflake_timestamp(id) AS at FROM parents ORDER BY id DESC LIMIT 10;"
         "INSERT INTO parents (n) SELECT 0 FROM generate_series(1, 100000)")
    page = (FILE.parent.parent / "docs/without-library.md").read_text()
    to_extension, back = (page.split(f"\n## {heading}\n")[1].split("```sql\n")[1].split("```")[0] for heading in ("To the extension", "And back"))
    ends = []

    def move():
        for statements in (to_extension, back):
            time.sleep(3)
            attempts = 1
            while "lock timeout" in psql(statements, check=False):
                attempts += 1
            print("     ", attempts, "attempts")
            ends.append(int(psql("SELECT greatest((SELECT max(id) FROM parents), (SELECT max(id) FROM children))")))

    pgbench("WITH p AS (INSERT INTO parents (n) VALUES (1) RETURNING id) INSERT INTO children (parent) SELECT id FROM p;", 4, "-T12", move)
    everything = "(SELECT id FROM parents UNION ALL SELECT id FROM children) AS i"
    for name, condition in (("before it", f"id <= {ends[0]}"), ("of the extension", f"id > {ends[0]} AND id <= {ends[1]}"), ("after the way back", f"id > {ends[1]}")):
        print("     ", psql(f"SELECT count(*) FROM {everything} WHERE {condition}"), f"IDs {name}")
    count, repeats = psql(f"SELECT count(*), count(*) - count(DISTINCT id) FROM {everything}").split("|")
    report(f"repeats of {count} IDs", repeats, "0")
    report("defaults of the schema again", psql("SELECT count(*) FROM pg_attrdef WHERE pg_get_expr(adbin, adrelid) = 'snowflake_sql.snowflake_nextval()'"), "2")
    report("findings", psql("SELECT count(*) FROM snowflake_sql.snowflake_audit_installation()"), "0")


for part in PARTS:
    globals()[part]()
psql(f"DROP DATABASE IF EXISTS {DATABASE}", "postgres")
psql(f"DROP ROLE IF EXISTS {DATABASE}_owner", "postgres")
sys.exit(f"{len(failed)} wrong" if failed else 0)

# Exports of a table as CSV, opened by a spreadsheet program, saved as an Excel
# file, opened again, and saved as CSV.
# shellcheck shell=bash

install() {
    need_packages libreoffice-calc-nogui
}

# office ARGUMENTS...: with settings of its own.
office() { soffice --headless "-env:UserInstallation=file://$OUT/profile" "$@" >&2; }

# Comma, quote, UTF-8, from the first line on.
CSV=44,34,76,1

# kept WAY FORM [IMPORT]: exports the IDs in that form (SQL), and counts those that are
# the same afterwards.
kept() {
    local way=$1 form=$2 import=${3:-}
    psql -U app -c "COPY (SELECT $form AS id, note FROM orders ORDER BY id) TO STDOUT (FORMAT csv, HEADER)" >"$OUT/$way.csv"
    office "--infilter=CSV:$CSV${import:+,$import}" --convert-to xlsx --outdir "$OUT/saved" "$OUT/$way.csv"
    office --convert-to "csv:Text - txt - csv (StarCalc):$CSV" --outdir "$OUT/saved" "$OUT/saved/$way.xlsx"
    {
        printf '%s\n' 'CREATE TEMPORARY TABLE cells (id text, note text);' 'COPY cells FROM stdin (FORMAT csv, HEADER);'
        cat "$OUT/saved/$way.csv"
        printf '%s\n' '\.' "SELECT count(*) FROM cells AS c JOIN orders AS o USING (note) WHERE c.id IN (o.id::text, snowflake_to_text(o.id), o.short::text)"
    } | psql -U app
}

# has HOW_MANY WANTED WHAT
has() {
    if [ "$1" = "$2" ]; then check ok "$3: $1 of 2000 IDs kept"; else check failed "$3: $1 of 2000 IDs kept, not $2"; fi
}

run() {
    soffice --headless --version 2>/dev/null | cut -d' ' -f1,2 >"$OUT/version"
    psql -U app <<'SQL'
CREATE TABLE orders (
    id bigint PRIMARY KEY DEFAULT snowflake_nextval(),
    note text UNIQUE,
    short bigint  -- as the layout js53 has it
);
INSERT INTO orders (note, short)
SELECT 'row ' || n, snowflake_min_id(now(), 'js53') + n FROM generate_series(1, 2000) AS n;
SQL
    has "$(kept number id)" 0 'as numbers'
    has "$(kept formula "format('=\"%s\"', id)")" 2000 'as formulas'
    has "$(kept base32 'snowflake_to_text(id)')" 2000 'as base32'
    has "$(kept column id 1/2)" 2000 'imported as a column of text'
    has "$(kept short short)" 2000 'numbers of the layout js53'
    echo 10000 >"$OUT/checked"
}

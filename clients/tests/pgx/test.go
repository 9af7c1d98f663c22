// pgx, as the section on it in docs/clients.md says.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v4"
)

// An Order is sent as JSON with its ID as text.
type Order struct {
	ID   int64  `json:"id,string"`
	Note string `json:"note"`
}

var ids, checks *os.File

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func report(relation, note string, id int64) {
	fmt.Fprintf(ids, "%s\t%s\t%d\n", relation, note, id)
}

func check(ok bool, format string, values ...interface{}) {
	result := "failed"
	if ok {
		result = "ok"
	}
	fmt.Fprintf(checks, "%s\t%s\n", result, fmt.Sprintf(format, values...))
}

func insertMany(ctx context.Context, conn *pgx.Conn, notes []string) ([]Order, error) {
	rows, err := conn.Query(ctx,
		"INSERT INTO bulk_rows (note) SELECT unnest($1::text[]) RETURNING id, note", notes)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var orders []Order
	for rows.Next() {
		var order Order
		if err := rows.Scan(&order.ID, &order.Note); err != nil {
			return nil, err
		}
		orders = append(orders, order)
	}
	return orders, rows.Err()
}

func main() {
	ctx := context.Background()
	var err error
	ids, err = os.Create(os.Getenv("OUT") + "/ids")
	must(err)
	checks, err = os.Create(os.Getenv("OUT") + "/checks")
	must(err)
	conn, err := pgx.Connect(ctx, "")
	must(err)
	defer conn.Close(ctx)

	// A new table.
	for _, table := range []string{"orders", "bulk_rows", "copied"} {
		_, err = conn.Exec(ctx, "CREATE TABLE "+table+" (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), note text UNIQUE)")
		must(err)
	}
	var id int64
	must(conn.QueryRow(ctx, "INSERT INTO orders (note) VALUES ($1) RETURNING id", "first").Scan(&id))
	report("orders", "first", id)

	// Many rows.
	notes := make([]string, 2000)
	for i := range notes {
		notes[i] = fmt.Sprintf("row %d", i)
	}
	orders, err := insertMany(ctx, conn, notes)
	must(err)
	for _, order := range orders {
		report("bulk_rows", order.Note, order.ID)
	}
	copied, err := conn.CopyFrom(ctx, pgx.Identifier{"copied"}, []string{"note"},
		pgx.CopyFromSlice(len(notes), func(i int) ([]interface{}, error) {
			return []interface{}{notes[i]}, nil
		}))
	must(err)
	var distinct int64
	must(conn.QueryRow(ctx, "SELECT count(DISTINCT id) FROM copied").Scan(&distinct))
	check(copied == 2000 && distinct == 2000, "CopyFrom: %d rows, %d distinct IDs", copied, distinct)

	// A table that is migrated.
	_, err = conn.Exec(ctx, "CREATE TABLE tickets (id serial PRIMARY KEY, note text UNIQUE)")
	must(err)
	must(conn.QueryRow(ctx, "INSERT INTO tickets (note) VALUES ($1) RETURNING id", "old").Scan(&id))
	report("tickets", "old", id)
	migrator, err := pgx.Connect(ctx, "")
	must(err)
	defer migrator.Close(ctx)
	_, err = migrator.Exec(ctx, "CALL snowflake_migrate.run('tickets')")
	must(err)
	// pgx prepares each statement and keeps it.
	err = conn.QueryRow(ctx, "INSERT INTO tickets (note) VALUES ($1) RETURNING id", "refused").Scan(&id)
	check(err != nil && strings.Contains(err.Error(), "0A000"), "a connection from before the migration: %v", err)
	must(conn.QueryRow(ctx, "INSERT INTO tickets (note) VALUES ($1) RETURNING id", "new").Scan(&id))
	report("tickets", "new", id)
	var narrow int32
	err = conn.QueryRow(ctx, "INSERT INTO tickets (note) VALUES ($1) RETURNING id", "narrow").Scan(&narrow)
	check(err != nil, "an int32 is refused: %v", err)

	// A range of time.
	var found int
	must(conn.QueryRow(ctx, "SELECT count(*) FROM bulk_rows WHERE id >= snowflake_min_id($1)",
		time.Now().Add(-time.Hour)).Scan(&found))
	check(found == 2000, "%d of 2000 rows are found by time", found)

	// As text.
	sent, err := json.Marshal(Order{ID: id, Note: "new"})
	must(err)
	var received Order
	must(json.Unmarshal(sent, &received))
	check(received.ID == id && strings.Contains(string(sent), fmt.Sprintf(`"%d"`, id)), "JSON has the ID as text: %s", sent)
	var guessed map[string]interface{}
	must(json.Unmarshal([]byte(fmt.Sprintf(`{"id": %d}`, id|1)), &guessed))
	check(int64(guessed["id"].(float64)) != id|1, "a JSON number that is read into interface{} loses digits: %d becomes %.0f", id|1, guessed["id"])
	decoder := json.NewDecoder(strings.NewReader(fmt.Sprintf(`{"id": %d}`, id|1)))
	decoder.UseNumber()
	must(decoder.Decode(&guessed))
	check(guessed["id"].(json.Number).String() == fmt.Sprint(id|1), "UseNumber keeps them: %v", guessed["id"])
}

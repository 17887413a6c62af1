package schema

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"autopost/db"
)

// clusterDDL lets a session change the tables of a cluster after others in the same transaction, and create triggers.
const clusterDDL = `set citus.multi_shard_modify_mode = 'sequential'; set citus.enable_unsafe_triggers = on`

// ErrNotCoordinator means that a migration was started on a worker of a Citus cluster.
var ErrNotCoordinator = errors.New("this node is a worker of a Citus cluster: set AUTOPOST_COORDINATOR_URL to the coordinator, which alone can migrate")

// onCoordinator reports whether the database is the coordinator of a Citus cluster. It returns ErrNotCoordinator on a
// worker, and false on a database without Citus.
func onCoordinator(ctx context.Context, conn *pgx.Conn) (bool, error) {
	var distributed, coordinator bool
	if err := conn.QueryRow(ctx, `select exists (select 1 from pg_catalog.pg_extension e where e.extname = 'citus')`).Scan(&distributed); err != nil {
		return false, fmt.Errorf("find the extension citus: %w", err)
	}
	if !distributed {
		return false, nil
	}
	if err := conn.QueryRow(ctx, `select citus_is_coordinator()`).Scan(&coordinator); err != nil {
		return false, fmt.Errorf("ask for the role of the node: %w", err)
	}
	if !coordinator {
		return false, ErrNotCoordinator
	}
	return true, nil
}

// installSource creates the views, functions and grants. A cluster gets one statement at a time, because Citus sends some
// of them to the other nodes by their text.
func installSource(ctx context.Context, tx pgx.Tx, source string, distributed bool) error {
	if !distributed {
		_, err := tx.Exec(ctx, source)
		return err
	}
	if _, err := tx.Exec(ctx, clusterDDL); err != nil {
		return err
	}
	for _, s := range statements(source) {
		if _, err := tx.Exec(ctx, s.sql); err != nil {
			return fmt.Errorf("%w\nin: %.200s", err, s.sql)
		}
	}
	return nil
}

// distribute runs distribute.sql: tables onto the nodes, functions registered.
func distribute(ctx context.Context, conn *pgx.Conn) error {
	for _, s := range statements(db.Distribute) {
		if err := run(ctx, conn, s); err != nil {
			return fmt.Errorf("distribute the schema: %w\nin: %.200s", err, s.sql)
		}
	}
	return nil
}

// run runs a statement, and the statements that it returns if it ends with \gexec.
func run(ctx context.Context, conn *pgx.Conn, s statement) error {
	if !s.returnsStatements {
		_, err := conn.Exec(ctx, s.sql)
		return err
	}
	rows, err := conn.Query(ctx, s.sql)
	if err != nil {
		return err
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, sql := range list {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%w\nin: %.200s", err, sql)
		}
	}
	return nil
}

// statement is one statement of a script.
type statement struct {
	sql string
	// returnsStatements means that it ends with \gexec instead of a semicolon, as psql has it.
	returnsStatements bool
}

// statements splits a script. It knows comments to the end of the line, quoted text, and text between dollar signs.
func statements(script string) []statement {
	var list []statement
	start := 0
	end := func(at, next int, returns bool) {
		if sql := strings.TrimSpace(script[start:at]); withoutComments(sql) != "" {
			list = append(list, statement{sql, returns})
		}
		start = next
	}
	for i := 0; i < len(script); i++ {
		rest := script[i:]
		switch {
		case strings.HasPrefix(rest, "--"):
			i += skip(rest, "\n") - 1
		case rest[0] == '\'' || rest[0] == '"':
			i += 1 + skip(rest[1:], rest[:1]) - 1
		case rest[0] == '$':
			if tag := dollarTag(rest); tag != "" {
				i += len(tag) + skip(rest[len(tag):], tag) - 1
			}
		case rest[0] == ';':
			end(i, i+1, false)
		case strings.HasPrefix(rest, `\gexec`):
			end(i, i+len(`\gexec`), true)
			i += len(`\gexec`) - 1
		}
	}
	end(len(script), len(script), false)
	return list
}

// skip returns the number of bytes through the next mark, or to the end.
func skip(text, mark string) int {
	if at := strings.Index(text, mark); at >= 0 {
		return at + len(mark)
	}
	return len(text)
}

// dollarTag returns the mark with which text begins, like $$ or $name$; "" if it does not begin with one.
func dollarTag(text string) string {
	name, _, found := strings.Cut(text[1:], "$")
	if !found || strings.ContainsFunc(name, func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') }) {
		return ""
	}
	return "$" + name + "$"
}

func withoutComments(sql string) string {
	var text strings.Builder
	for line := range strings.Lines(sql) {
		if !strings.HasPrefix(strings.TrimSpace(line), "--") {
			text.WriteString(line)
		}
	}
	return strings.TrimSpace(text.String())
}

package pg

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Seed runs a script of SQL as the owner of the schema, in one transaction.
func Seed(ctx context.Context, url, script string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `set local role autopost_owner`); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, script)
		return err
	})
}

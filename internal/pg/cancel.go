package pg

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"
)

// cancelRequested marks a connection whose server may still receive a cancel request.
const cancelRequested = "autopost.cancel_requested"

// cancelSafely makes a cancelled context cancel its statement at the server. PostgreSQL names no statement in a cancel
// request, and may deliver it late: the request would end the next statement of the connection. So the pool closes a
// connection that asked for a cancel instead of lending it again.
func cancelSafely(config *pgxpool.Config) {
	config.ConnConfig.BuildContextWatcherHandler = func(conn *pgconn.PgConn) ctxwatch.Handler {
		return canceller{&pgconn.CancelRequestContextWatcherHandler{Conn: conn, CancelRequestDelay: 0, DeadlineDelay: 5 * time.Second}}
	}
	config.PrepareConn = func(_ context.Context, conn *pgx.Conn) (bool, error) {
		return conn.PgConn().CustomData()[cancelRequested] == nil, nil
	}
}

// canceller sends cancel requests and marks the connections of the statements.
type canceller struct {
	*pgconn.CancelRequestContextWatcherHandler
}

// HandleUnwatchAfterCancel implements ctxwatch.Handler. The goroutine that owns the connection calls it.
func (c canceller) HandleUnwatchAfterCancel() {
	c.CancelRequestContextWatcherHandler.HandleUnwatchAfterCancel()
	c.Conn.CustomData()[cancelRequested] = true
}

package db_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
)

// A function that decides by rows it locks must see them as they are by then: under
// a fixed snapshot every public function refuses, and says so.
func TestOnlyReadCommitted(t *testing.T) {
	t.Parallel()
	base := pgtest.New(t)
	base.Exec(`insert into autopost.workspaces (workspace_id) values ('w')`)
	engine := base.Session("engine", "engine")
	for _, level := range []string{"repeatable read", "serializable"} {
		engine.Exec(`begin isolation level ` + level)
		require.ErrorContains(t, engine.Start(`select autopost.claim_deliveries('w', 'run', 1)`).Err(), "AP005", level)
		engine.Exec(`rollback`)
	}
	require.Empty(t, engine.Exec(`select autopost.claim_deliveries('w', 'run', 1)`))
}

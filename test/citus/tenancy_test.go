//go:build citus

package citus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
)

// TestTenancyIsThatOfPlainPostgreSQL calls every function with a workspace as every role, for a workspace of the role, for
// one that is not, and for an unknown one. The cluster answers as plain PostgreSQL does. The calls take turns at the nodes,
// so that each function enters at each node. Citus 13.2 ends the server at a null workspace, before any code of ours runs
// (docs/operate/scale.md).
func TestTenancyIsThatOfPlainPostgreSQL(t *testing.T) {
	plain, cluster := pgtest.NewAlone(t), pgtest.New(t)
	require.True(t, cluster.OnCluster(), "make test-citus sets AUTOPOST_TEST_CITUS")
	calls := pgtest.Column[string](plain, `
		select format('select * from autopost.%I(%%s%s)', p.proname,
			coalesce((select string_agg(', null::' || format_type(a.type, null), '' order by a.place)
				from unnest(p.proargtypes) with ordinality a (type, place) where a.place > 1), ''))
		from pg_catalog.pg_proc p
		where p.pronamespace = 'autopost'::regnamespace and p.prosecdef and p.prorettype <> 'trigger'::regtype
		and p.proargnames[1] = 'p_workspace_id'
		order by p.oid::regprocedure::text`)
	require.Greater(t, len(calls), 200)
	for _, db := range []*pgtest.DB{plain, cluster} {
		db.Exec(`insert into autopost.workspaces (workspace_id) values ('own'), ('foreign')`)
	}
	for _, role := range []string{"engine", "caller", "reader", "owner"} {
		want := answers(t, calls, entries(t, plain, role, plain.URL(role)))
		got := answers(t, calls, entries(t, cluster, role, cluster.NodeURL(0, role), cluster.NodeURL(1, role), cluster.NodeURL(2, role)))
		for call, answer := range want {
			require.Equal(t, answer, got[call], "%s: %s", role, call)
		}
	}
}

// entries connects as a role, which may act for the workspace own.
func entries(t *testing.T, db *pgtest.DB, role string, urls ...string) (all []*pgx.Conn) {
	t.Helper()
	for _, url := range urls {
		conn, err := pgx.Connect(t.Context(), url)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, conn.Close(context.WithoutCancel(t.Context()))) })
		all = append(all, conn)
	}
	if role == "caller" || role == "reader" {
		db.Exec(`insert into autopost.role_workspaces (role_name, workspace_id) values ($1, 'own')`, all[0].Config().User)
	}
	return all
}

// answers returns the SQLSTATE and the message of each call, or that it was accepted. The calls of a function take turns
// at the connections.
func answers(t *testing.T, calls []string, entries []*pgx.Conn) map[string]string {
	t.Helper()
	login := entries[0].Config().User
	all := map[string]string{}
	for turn, workspace := range []string{"'own'", "'foreign'", "'nowhere'"} {
		for n, call := range calls {
			sql := fmt.Sprintf(call, workspace)
			_, err := entries[(n+turn)%len(entries)].Exec(t.Context(), sql)
			refused := new(pgconn.PgError)
			switch {
			case err == nil:
				all[sql] = "accepted"
			case errors.As(err, &refused):
				all[sql] = refused.Code + " " + strings.ReplaceAll(refused.Message, login, "LOGIN")
			default:
				require.NoError(t, err, sql)
			}
		}
	}
	return all
}

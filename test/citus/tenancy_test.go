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
// one that is not, and for an unknown one. The cluster answers as plain PostgreSQL does, from each node. Citus 13.2 ends the
// server at a null workspace, before any code of ours runs (docs/operate/scale.md).
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
		want := answers(t, plain, role, plain.URL(role), calls)
		for node := range 3 {
			got := answers(t, cluster, role, cluster.NodeURL(node, role), calls)
			for call, answer := range want {
				require.Equal(t, answer, got[call], "%s on node %d: %s", role, node, call)
			}
		}
	}
}

// answers returns the SQLSTATE and the message of each call, or that it was accepted.
func answers(t *testing.T, db *pgtest.DB, role, url string, calls []string) map[string]string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(context.WithoutCancel(t.Context()))) }()
	login := conn.Config().User
	if role == "caller" || role == "reader" {
		db.Exec(`insert into autopost.role_workspaces (role_name, workspace_id) values ($1, 'own') on conflict do nothing`, login)
	}
	all := map[string]string{}
	for _, workspace := range []string{"'own'", "'foreign'", "'nowhere'"} {
		for _, call := range calls {
			sql := fmt.Sprintf(call, workspace)
			_, err := conn.Exec(t.Context(), sql)
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

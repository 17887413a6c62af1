package cli

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/db"
)

// A machine that has only the program gets the statements for a superuser from it.
func TestMigratePrintsTheRolesWithoutADatabase(t *testing.T) {
	t.Setenv("DATABASE_URL", "postgres://nobody@127.0.0.1:1/none")
	var out bytes.Buffer
	root := rootCommand()
	root.SetOut(&out)
	root.SetArgs([]string{"migrate", "--print-roles"})
	require.NoError(t, root.ExecuteContext(t.Context()))
	require.Equal(t, db.Roles, out.String())
}

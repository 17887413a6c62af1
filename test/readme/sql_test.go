package readme

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/testing/pgtest"
	"autopost/internal/testing/posttest"
	"autopost/internal/testing/source"
)

// TestPageOfSQLFunctionsWorksAsTyped types the examples of docs/reference/sql.md into psql: the owner creates the login,
// and the login claims, starts and commits a delivery.
func TestPageOfSQLFunctionsWorksAsTyped(t *testing.T) {
	t.Parallel()
	root, err := source.Root()
	require.NoError(t, err)
	page, err := os.ReadFile(filepath.Join(root, "docs", "reference", "sql.md"))
	require.NoError(t, err)
	intro, _, _ := strings.Cut(string(page), "## Errors")
	blocks := typedBlock.FindAllStringSubmatch(intro, -1)
	require.Len(t, blocks, 2)

	db := pgtest.New(t)
	posttest.Workspace(db, "acme")
	posttest.Channel(db, "acme", "news")
	id := posttest.Delivery(db, "acme", "news", autopost.StatusQueued)
	psql, err := exec.LookPath("psql")
	require.NoError(t, err, "psql is missing: make setup installs it")
	types := func(at, sql string) {
		command := exec.CommandContext(t.Context(), psql, "-v", "ON_ERROR_STOP=1", "-d", at)
		command.Stdin = strings.NewReader(sql)
		out, err := command.CombinedOutput()
		require.NoError(t, err, string(out))
	}
	types(db.URL(""), blocks[1][2])
	login, err := url.Parse(db.URL(""))
	require.NoError(t, err)
	login.User = url.UserPassword("n8n", "…")
	types(login.String(), blocks[0][2])
	require.Equal(t, "sent", pgtest.Value[string](db, `select status from autopost.deliveries where delivery_id = $1::uuid`, id))
}

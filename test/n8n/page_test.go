package n8n

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
	"autopost/internal/testing/source"
)

// The page names every workflow and credential, and its SQL makes the login.
func TestThePageSetsUpN8N(t *testing.T) {
	root, err := source.Root()
	require.NoError(t, err)
	raw, err := os.ReadFile(filepath.Join(root, "docs", "operate", "n8n.md"))
	require.NoError(t, err)
	page := string(raw)
	for file, text := range exports(t) {
		w := parse(t, text)
		if strings.HasPrefix(file, "adapter_") {
			require.Contains(t, page, "adapters", file)
		} else {
			require.Contains(t, page, "`"+w.Name+"`")
		}
		for _, n := range w.Nodes {
			for _, c := range n.Credentials {
				require.Contains(t, page, "| "+c.Name+" |", n.Name)
			}
		}
	}
	db := pgtest.New(t)
	db.Exec(`insert into autopost.workspaces (workspace_id) values ('acme'), ('other')`)
	for _, block := range regexp.MustCompile("(?ms)^```sql\n(.*?)^```$").FindAllStringSubmatch(page, -1) {
		db.Exec(block[1])
	}
	defer db.Exec(`drop role n8n`)
	session := db.Session("n8n", "caller")
	db.Exec(`grant n8n to ` + session.Exec(`select session_user::text`)[0][0].(string))
	require.Equal(t, [][]any{{"acme"}}, session.Exec(`select workspace_id from autopost.list_workspaces() as workspace_id`))
}

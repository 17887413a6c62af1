package e2e

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/localpg"
	"autopost/test/harness"
)

// newCluster starts an empty PostgreSQL with its own system identifier and returns its URL.
func newCluster(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "cluster-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // a folder that remains in the temporary directory does no harm
	require.NoError(t, os.Chmod(dir, 0o711))    // PostgreSQL runs as another user if the tests run as root
	instance, err := localpg.Start(t.Context(), localpg.Options{Dir: filepath.Join(dir, "pg"), BinDir: os.Getenv("AUTOPOST_PG_BIN"), Volatile: true})
	require.NoError(t, err)
	t.Cleanup(func() { _ = instance.Stop(t.Context()) })
	return instance.URL()
}

// blocks returns the command blocks of a page.
func blocks(t *testing.T, page string) []string {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	var found []string
	for _, match := range regexp.MustCompile("(?s)```\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		found = append(found, match[1])
	}
	return found
}

// The commands of docs/operate/backup.md restore a dump into another cluster. The copy sends nothing until it is
// confirmed; what the original has sent since the backup is not sent twice.
func TestARestoredCopySendsNothingUntilItIsConfirmed(t *testing.T) {
	t.Parallel()
	h := harness.New(t)
	h.Workspace("acme")
	h.Endpoint("acme", "in", "e2e-secret")
	h.Channel("acme", harness.Channel{ID: "news", Platform: harness.MAX})
	copyURL, folder := newCluster(t), t.TempDir()
	onCopy := "DATABASE_URL=" + copyURL
	typed := func(block string) string {
		shell := exec.CommandContext(t.Context(), "bash", "-euc", block)
		shell.Dir = folder
		shell.Env = append(os.Environ(), "PATH="+filepath.Dir(h.Binary())+":"+os.Getenv("PATH"), "DATABASE_URL="+h.DB.URL(""), "NEW_DATABASE_URL="+copyURL)
		out, err := shell.CombinedOutput()
		require.NoError(t, err, "%s\n%s", block, out)
		return string(out)
	}
	page := blocks(t, "../../docs/operate/backup.md")
	require.Len(t, page, 3)

	d := h.Serve()
	require.Equal(t, http.StatusAccepted, h.Push(d, "e2e-secret", harness.Post("text", "before")).Status)
	h.Drained("acme")
	d.Kill()
	posted := h.Run(nil, "post", "--text", "in the dump")
	require.Zero(t, posted.Code, posted.Stderr)
	typed(page[0])
	d = h.Serve()
	h.Drained("acme")
	require.Len(t, h.Accepted(), 2, "the original sends after the backup")
	require.Zero(t, d.Stop())

	typed(page[1])
	copied := h.Serve(onCopy)
	require.Contains(t, copied.Log(), "daemon.restored_copy")
	require.Contains(t, copied.Log(), "autopost restore confirm")
	require.Equal(t, http.StatusAccepted, h.Push(copied, "e2e-secret", harness.Post("text", "after the restore")).Status)
	doctor := h.Run([]string{onCopy}, "doctor")
	require.Equal(t, 1, doctor.Code)
	require.Contains(t, doctor.Stdout, "autopost restore confirm")
	claimed := typed(`psql "$NEW_DATABASE_URL" --tuples-only --no-align --command "select count(*) from autopost.claim_deliveries('acme', 'by hand', 10)"`)
	require.Equal(t, "0", strings.TrimSpace(claimed))
	require.Len(t, h.Accepted(), 2)

	said := typed(`export DATABASE_URL="$NEW_DATABASE_URL"` + "\n" + page[2])
	require.Contains(t, said, "the outcome of 1 posts is unknown")
	h.Until("the rest goes out", func() bool { return len(h.Accepted()) == 3 })
	h.Until("the platform was asked", func() bool {
		list := h.Run([]string{onCopy}, "deliveries", "list", "--status", "sent", "--json")
		return strings.Count(list.Stdout, `"delivery_id"`) == 3
	})
	require.Len(t, h.Accepted(), 3, "no post went out twice")
	require.Zero(t, copied.Stop())
	require.Contains(t, h.Run([]string{onCopy}, "restore", "confirm", "--reason", "again").Stdout, "nothing to confirm")
	require.Zero(t, h.Run([]string{onCopy}, "verify").Code)
}

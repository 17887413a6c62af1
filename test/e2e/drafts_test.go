package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
)

// A draft with a picture from disk is stored by a command and published once.
func TestDraftIsPublishedOnce(t *testing.T) {
	t.Parallel()
	h, _, _ := newsroom(t)
	h.File("bridge.png", string(photo(t)))
	ok(t, h, "drafts", "save", "--text", "The bridge", "--media", h.Folder("bridge.png"))
	draft := pgtest.Value[string](h.DB, `select draft_id::text from autopost.drafts`)
	require.Contains(t, ok(t, h, "drafts", "list"), draft)
	require.Contains(t, ok(t, h, "drafts", "show", draft), "sha256:")
	require.Equal(t, 1, h.Run(nil, "drafts", "show", draft, "--operator", "somebody else").Code)
	ok(t, h, "drafts", "save", "--id", draft, "--text", "The new bridge", "--endpoint", "cms")
	require.Contains(t, ok(t, h, "drafts", "submit", draft), "2 enqueued")
	require.Contains(t, ok(t, h, "drafts", "submit", draft), "2 enqueued", "the first answer")
	require.Equal(t, []string{"The new bridge"}, pgtest.Column[string](h.DB, `select payload ->> 'text' from autopost.messages`))
	removed := h.Run(nil, "drafts", "remove", draft)
	require.Equal(t, 1, removed.Code)
	require.Contains(t, removed.Stderr, "submitted")
	require.Contains(t, ok(t, h, "drafts", "list"), "You have no draft")
}

package db_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
)

var jsonBlock = regexp.MustCompile("(?ms)^```json[^\n]*\n(.*?)^```$")

// The example of docs/posts.md is a valid post, and the page names every field that a post may have.
func TestPostsPageIsComplete(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/posts.md")
	require.NoError(t, err)
	example := jsonBlock.FindSubmatch(page)
	require.NotNil(t, example)
	require.True(t, json.Valid(example[1]))
	d := pgtest.New(t)
	// The dates of the page move along, because remove_at has a latest date.
	tomorrow := time.Now().AddDate(0, 0, 1)
	post := strings.NewReplacer("2026-12-01", tomorrow.Format(time.DateOnly), "2026-12-08", tomorrow.AddDate(0, 0, 7).Format(time.DateOnly)).Replace(string(example[1]))
	require.JSONEq(t, `[]`, pgtest.Value[string](d, `select autopost.payload_errors($1)::text`, post))
	require.JSONEq(t, `[]`, pgtest.Value[string](d, `select autopost.unknown_fields($1)::text`, post))
	source, err := os.ReadFile("functions/post/payload_errors.sql")
	require.NoError(t, err)
	lists := regexp.MustCompile(`(?s)key not in \((.*?)\)`).FindAllStringSubmatch(string(source), -1)
	require.GreaterOrEqual(t, len(lists), 5)
	fields := pgtest.Column[string](d, `select unnest(autopost.post_fields() || autopost.video_fields())`)
	for _, list := range lists {
		for _, name := range regexp.MustCompile(`'(\w+)'`).FindAllStringSubmatch(list[1], -1) {
			fields = append(fields, name[1])
		}
	}
	for _, field := range fields {
		require.Contains(t, string(page), "`"+field+"`", "docs/posts.md does not explain the field %s", field)
	}
}

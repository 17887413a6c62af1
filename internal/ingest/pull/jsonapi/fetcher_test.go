package jsonapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/ingest/pull"
	"autopost/internal/ingest/pull/item"
	"autopost/internal/outbound"
)

// keys are the credentials of these tests.
type keys map[string]string

func (k keys) ForAddress(_ context.Context, workspace, authRef string, address *url.URL) (autopost.Secret, error) {
	value, ok := k[workspace+"/"+authRef+"/"+address.Hostname()]
	if !ok {
		return autopost.Secret{}, errors.New("it is not bound")
	}
	return autopost.NewSecret(value), nil
}

func fetcher() *Fetcher {
	return New(&http.Client{}, &http.Client{}, keys{"w/crm/127.0.0.1": "canary-key"})
}

// source returns a source that was polled before.
func source(config map[string]any) pull.Source {
	raw, _ := json.Marshal(config)
	return pull.Source{WorkspaceID: "w", SourceID: "s", Kind: "api", Config: raw, Cursor: json.RawMessage(`{"first_seen_done":true}`)}
}

func serve(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return server.URL
}

func says(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }
}

func refs(batch pull.Batch) []string {
	list := []string{}
	for _, item := range batch.Items {
		if !item.Skip {
			list = append(list, item.SourceRef)
		}
	}
	return list
}

func requireFailure(t *testing.T, err error, code, words string) {
	t.Helper()
	failure, ok := errors.AsType[*pull.Failure](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, code, failure.Code, failure.Message)
	require.Contains(t, failure.Message, words)
	require.NotContains(t, failure.Message, "canary")
}

func TestItemsAreMapped(t *testing.T) {
	address := serve(t, says(`{"data": {"a/b": [
		{"no": 12345678901234567890, "head": "A <b>bold</b> one", "body": {"html": "<p>One</p><p>Two &amp; three</p>"}, "path": "/posts/2",
			"by": {"name": "Ann"}, "labels": ["x", 5, {"y": 1}], "at": 1795176000, "pics": ["/1.png", "ftp://h/2.png"], "kind": "image"},
		{"no": 1, "head": "plain & <simple>", "body": {"html": "two\nlines"}, "path": "javascript:alert(1)", "labels": "a, b", "at": "2030-01-01", "pics": "clip.bin", "kind": "video/mp4"}]}}`))
	batch, err := fetcher().Fetch(t.Context(), source(map[string]any{
		"url": address + "/v1/list", "items": "/data/a~1b", "tags": []string{"news"}, "template": "{title}|{text}|{link}|{author}|{categories}",
		"map": map[string]string{"id": "/no", "title": "/head", "text": "/body/html", "link": "/path", "author": "/by/name", "tags": "/labels",
			"published": "/at", "media_url": "/pics", "media_type": "/kind"},
	}))
	require.NoError(t, err)
	require.Len(t, batch.Items, 2)
	first, second := batch.Items[0], batch.Items[1]
	require.Equal(t, "1", first.SourceRef, "newest first, as usual: handed over oldest first")
	require.Equal(t, "plain & <simple>|two\nlines|||a, b", first.Payload.Text)
	require.Nil(t, first.PublishedAt)
	require.Equal(t, []pull.Media{{Type: "video", URL: address + "/v1/clip.bin"}}, first.Payload.Media)
	require.Equal(t, "12345678901234567890", second.SourceRef)
	require.Equal(t, "A bold one|One\n\nTwo & three|"+address+"/posts/2|Ann|x, 5", second.Payload.Text)
	require.Equal(t, []string{"news", "x", "5"}, second.Tags)
	require.Equal(t, "2026-11-20T12:00:00Z", second.PublishedAt.Format("2006-01-02T15:04:05Z07:00"))
	require.Equal(t, []pull.Media{{Type: "image", URL: address + "/1.png"}}, second.Payload.Media)
}

func TestUnexpectedAnswersAreDescribed(t *testing.T) {
	for name, c := range map[string]struct{ body, code, words string }{
		"no array":  {`{"data": [], "meta": {}}`, "pull_mapping", "the document has the keys data, meta"},
		"an object": {`{"posts": {"a": 1}}`, "pull_mapping", "points to the keys a"},
		"no field":  {`{"posts": [{"uid": 1, "message": "x"}]}`, "pull_mapping", "an item has the keys message, uid"},
		"HTML":      {"\n<html>", "pull_not_json", "HTML or XML"},
		"cut off":   {`{"posts": [{"id": 1`, "pull_malformed", "complete JSON"},
		"too deep":  {strings.Repeat("[", maxDepth+1), "pull_malformed", "levels"},
		"nothing":   {"", "pull_malformed", "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := fetcher().Fetch(t.Context(), source(map[string]any{"url": serve(t, says(c.body)), "items": "/posts", "map": map[string]string{"id": "/id", "text": "/text"}}))
			requireFailure(t, err, c.code, c.words)
		})
	}
	empty, err := fetcher().Fetch(t.Context(), source(map[string]any{"url": serve(t, says(`[]`)), "map": map[string]string{"id": "/id"}}))
	require.NoError(t, err)
	require.Empty(t, empty.Items)
	require.NotEmpty(t, empty.Cursor)
}

func TestConfigErrorsNameKeyAndRemedy(t *testing.T) {
	for raw, words := range map[string]string{
		`{}`:                                 "url must be",
		`{"map":{"id":"/id"}}`:               "url must be",
		`{"url":"https://h"}`:                "map must be set",
		`{"url":"https://h","map":{"i":""}}`: "map must have known keys, got i; use id",
		`{"url":"https://h","map":{"id":"data.id"}}`:                                       `map.id must be a JSON pointer; write "/data/id"`,
		`{"url":"https://h","map":{"id":"/a~2"}}`:                                          "map.id must contain ~ only",
		`{"url":"https://h","map":{"id":"/id"},"items":"x"}`:                               "items must be",
		`{"url":"https://h","map":{"id":"/id"},"order":"any"}`:                             "order must be",
		`{"url":"https://h","map":{"id":"/id"},"paging":{"by":"luck"}}`:                    "paging.by must be",
		`{"url":"https://h","map":{"id":"/id"},"paging":{"by":"pointer"}}`:                 "paging.pointer must be set with",
		`{"url":"https://h","map":{"id":"/id"},"paging":{"by":"page"}}`:                    "paging.parameter must be set with",
		`{"url":"https://h","map":{"id":"/id"},"paging":{"by":"page","max_pages":101}}`:    "paging.max_pages must be",
		`{"url":"https://h","map":{"id":"/id"},"paging":{"by":"link_header","first":"x"}}`: "paging must be an object",
		`{"url":"https://h","map":{"id":"/id"},"template":"{summary}"}`:                    "template must contain known placeholders, got {summary}",
	} {
		_, err := fetcher().Fetch(t.Context(), pull.Source{Config: json.RawMessage(raw)})
		requireFailure(t, err, "pull_config", words)
	}
}

// public resolves every name to a public address.
type public struct{}

func (public) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("93.184.215.14")}, nil
}

func TestCredentialIsSentOnlyToTheSource(t *testing.T) {
	var elsewhere, here []string
	other := serve(t, func(w http.ResponseWriter, r *http.Request) {
		elsewhere = append(elsewhere, r.Header.Get("X-Key"))
		_, _ = w.Write([]byte(`{"items": []}`))
	})
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		here = append(here, r.Header.Get("X-Key")+r.Header.Get("Authorization"))
		_, _ = fmt.Fprintf(w, `{"items": [{"id": 1, "text": "x"}], "next": %q}`, other+"/page2")
	})
	config := map[string]any{"url": address, "items": "/items", "map": map[string]string{"id": "/id", "text": "/text"}, "auth_ref": "crm",
		"auth_header": "X-Key", "paging": map[string]any{"by": "pointer", "pointer": "/next"}}
	_, err := fetcher().Fetch(t.Context(), source(config))
	require.NoError(t, err)
	require.Equal(t, []string{"canary-key"}, here)
	require.Equal(t, []string{""}, elsewhere)

	config["url"] = strings.Replace(address, "127.0.0.1", "name.test", 1)
	_, err = New(&http.Client{}, outbound.Guarded(outbound.GuardedConfig{TLS: true, Resolver: public{}}), keys{"w/crm/name.test": "canary-key"}).Fetch(t.Context(), source(config))
	requireFailure(t, err, "pull_blocked_address", "url must be https")
	config["url"] = address
	_, err = New(&http.Client{}, outbound.Guarded(outbound.GuardedConfig{TLS: true, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}), keys{"w/crm/127.0.0.1": "canary-key"}).Fetch(t.Context(), source(config))
	require.NoError(t, err, "an allowed network needs no TLS")
	here, elsewhere = here[:1], elsewhere[:1]

	delete(config, "auth_header")
	_, err = fetcher().Fetch(t.Context(), source(config))
	require.NoError(t, err)
	require.Equal(t, "Bearer canary-key", here[1])

	config["auth_ref"] = "nobody"
	_, err = fetcher().Fetch(t.Context(), source(config))
	requireFailure(t, err, "pull_credential", "auth_ref nobody: it is not bound")
}

// stream is an API with n items, newest or oldest first, and every kind of paging.
type stream struct {
	n, perPage  int
	oldestFirst bool
	asked       []string
}

func (s *stream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	page := 1
	for _, name := range []string{"page", "after", "next"} {
		if value := r.URL.Query().Get(name); value != "" {
			page, _ = strconv.Atoi(value)
		}
	}
	s.asked = append(s.asked, strconv.Itoa(page))
	var items []map[string]any
	for i := (page-1)*s.perPage + 1; i <= min(page*s.perPage, s.n); i++ {
		id := i
		if !s.oldestFirst {
			id = s.n + 1 - i
		}
		items = append(items, map[string]any{"id": id, "text": fmt.Sprint("post ", id)})
	}
	answer := map[string]any{"items": items}
	if items == nil {
		answer["items"] = []any{}
	}
	if page*s.perPage < s.n {
		answer["next"] = fmt.Sprintf("/?next=%d", page+1)
		answer["after"] = page + 1
		w.Header().Set("Link", fmt.Sprintf(`<http://%s/?page=%d>; rel="prev", </?page=%d>; title="x"; rel=next`, r.Host, page-1, page+1))
	}
	_ = json.NewEncoder(w).Encode(answer)
}

var ways = map[string]map[string]any{
	"pointer":     {"by": "pointer", "pointer": "/next"},
	"link header": {"by": "link_header"},
	"page":        {"by": "page", "parameter": "page"},
	"cursor":      {"by": "cursor", "parameter": "after", "pointer": "/after"},
}

func numbers(from, to int) []string {
	list := []string{}
	for i := from; i <= to; i++ {
		list = append(list, strconv.Itoa(i))
	}
	return list
}

func TestPagesAreReadUpToKnownItems(t *testing.T) {
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			s := &stream{n: 25, perPage: 5}
			config := source(map[string]any{"url": serve(t, s.ServeHTTP), "items": "/items", "map": map[string]string{"id": "/id", "text": "/text"},
				"paging": way, "backfill_items": 3})
			config.Cursor = nil
			first, err := fetcher().Fetch(t.Context(), config)
			require.NoError(t, err)
			require.Equal(t, numbers(23, 25), refs(first))
			require.Len(t, first.Items, 25, "the past is marked as seen")

			config.Cursor, s.n, s.asked = first.Cursor, 32, nil
			second, err := fetcher().Fetch(t.Context(), config)
			require.NoError(t, err)
			require.Subset(t, refs(second), numbers(26, 32))
			require.Equal(t, []string{"1", "2"}, s.asked, "and no further")

			// The poll breaks off after an item: the next one begins behind it.
			at := slices.IndexFunc(second.Items, func(i pull.Item) bool { return i.SourceRef == "27" })
			config.Cursor, s.n = second.Items[at].Cursor, 34
			third, err := fetcher().Fetch(t.Context(), config)
			require.NoError(t, err)
			require.Subset(t, refs(third), numbers(28, 34))
		})
	}
}

func TestMaxPagesNeverSkipsItems(t *testing.T) {
	s := &stream{n: 100, perPage: 5}
	config := source(map[string]any{"url": serve(t, s.ServeHTTP), "items": "/items", "map": map[string]string{"id": "/id", "text": "/text"},
		"paging": map[string]any{"by": "link_header", "max_pages": 3}})
	config.Cursor, _ = item.Cursor{FirstSeenDone: true, LastSeenID: "50", URLHash: item.Hash("x")}.Encode()
	batch, err := fetcher().Fetch(t.Context(), config)
	require.NoError(t, err)
	require.Equal(t, numbers(86, 100), refs(batch), "what was read is taken")
	require.NotNil(t, batch.Incomplete)
	require.Contains(t, batch.Incomplete.Message, "max_pages")
	for _, row := range batch.Items {
		c, err := item.ParseCursor(row.Cursor)
		require.NoError(t, err)
		require.Equal(t, "50", c.LastSeenID, "no cursor stands behind the gap")
	}
}

func TestOldestFirstContinuesAtTheLastPosition(t *testing.T) {
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			way = map[string]any{"by": way["by"], "pointer": way["pointer"], "parameter": way["parameter"], "max_pages": 2}
			for key, value := range way {
				if value == nil {
					delete(way, key)
				}
			}
			s := &stream{n: 25, perPage: 5, oldestFirst: true}
			config := source(map[string]any{"url": serve(t, s.ServeHTTP), "items": "/items", "map": map[string]string{"id": "/id", "text": "/text"},
				"paging": way, "order": "oldest_first", "backfill_items": 2})
			config.Cursor = nil
			var got []string
			poll := func() {
				batch, err := fetcher().Fetch(t.Context(), config)
				require.NoError(t, err)
				got = append(got, refs(batch)...)
				config.Cursor = batch.Cursor
			}
			poll()
			poll()
			require.Empty(t, got, "the past goes by")
			poll()
			require.Equal(t, numbers(24, 25), got, "the newest at first sight")
			s.n = 41
			for range 4 {
				poll()
			}
			for _, id := range numbers(26, 41) {
				require.Contains(t, got, id)
			}
		})
	}
}

func TestRepeatedPageFails(t *testing.T) {
	address := serve(t, says(`{"items": [{"id": 1, "text": "x"}], "next": "/a"}`))
	_, err := fetcher().Fetch(t.Context(), source(map[string]any{"url": address + "/", "items": "/items", "map": map[string]string{"id": "/id", "text": "/text"},
		"paging": map[string]any{"by": "pointer", "pointer": "/next"}}))
	requireFailure(t, err, "pull_mapping", "must not repeat")
}

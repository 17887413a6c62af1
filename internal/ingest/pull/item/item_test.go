package item

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func options(t *testing.T, raw string) Options {
	t.Helper()
	o, err := Decode(json.RawMessage(raw), "{title}", []string{"{title}"}, nil)
	require.NoError(t, err)
	return o
}

func TestFilters(t *testing.T) {
	e := Entry{Title: "Flat for Sale", Text: "Two rooms\nnear the park", Categories: []string{"Отдых", "c++"}}
	for filter, reason := range map[string]string{
		`{}`:                                                    "",
		`{"include": ["SALE"]}`:                                 "",
		`{"include": ["отдых"]}`:                                "",
		`{"include": ["c++"]}`:                                  "",
		`{"include": ["/c++/"]}`:                                "error",
		`{"include": ["rent"]}`:                                 "include",
		`{"include": ["/^Flat/"]}`:                              "",
		`{"include": ["/Sale$/"]}`:                              "",
		`{"include": ["/^for/"]}`:                               "include",
		`{"include": ["/sale/"]}`:                               "include",
		`{"include": ["/(?i)SALE/"]}`:                           "",
		`{"exclude": ["park"], "include": ["flat"]}`:            "exclude",
		`{"exclude": ["/rooms\\n+near/"]}`:                      "exclude",
		`{"include": ["Sale Two"]}`:                             "include",
		`{"exclude": ["/"], "include": ["//", "sale"]}`:         "",
		`{"include": ["/a{1001}/"]}`:                            "error",
		`{"exclude": ["nothing"], "include": ["x", "/rooms/"]}`: "",
	} {
		o, err := Decode(json.RawMessage(filter), "{title}", []string{"{title}"}, nil)
		if reason == "error" {
			require.ErrorContains(t, err, "RE2", filter)
			continue
		}
		require.NoError(t, err, filter)
		require.Equal(t, reason, o.filter.refuses(e), filter)
	}
}

func TestReadableKeepsTheLinesOfPlainText(t *testing.T) {
	require.Equal(t, "a < b\nand <T> &amp; c", Readable("a < b\nand <T> &amp; c"))
	require.Equal(t, "a\nb & c", Readable("<p>a<br/>b &amp;\nc</p>"))
}

func TestKindOf(t *testing.T) {
	for given, want := range map[[2]string]string{
		{"animation", "x"}: "animation", {"image/png", "x.mp4"}: "image", {"", "https://h/a.MP4?x=1"}: "video", {"text/html", "a.ogg"}: "audio", {"", "a.exe"}: "", {"file", ""}: "file",
	} {
		require.Equal(t, want, string(KindOf(given[0], given[1])), given)
	}
}

// No list of words makes a filter panic or hang, and a keyword in the title matches.
func FuzzFilter(f *testing.F) {
	f.Add("keyword", "A Keyword here")
	f.Add("/(a+)+$/", strings.Repeat("a", 100))
	f.Add("/(?i)ё/", "Ёж")
	f.Add("//", "x")
	f.Fuzz(func(t *testing.T, word, title string) {
		raw, err := json.Marshal(map[string]any{"include": []string{word}})
		if err != nil || !utf8.ValidString(word) || !utf8.ValidString(title) {
			return
		}
		o, err := Decode(raw, "{title}", []string{"{title}"}, nil)
		if err != nil {
			return
		}
		reason := o.filter.refuses(Entry{Title: title})
		if len(o.filter.include) == 1 && o.filter.include[0].pattern == nil {
			if found := strings.Contains(strings.ToLower(title), o.filter.include[0].keyword); found != (reason == "") {
				t.Errorf("%q in %q: %q", word, title, reason)
			}
		}
	})
}

func TestBackfillCountsOnlyPublishableItems(t *testing.T) {
	o := options(t, `{"backfill_items": 1, "exclude": ["ad"]}`)
	batch, err := Batch(o, []Entry{{ID: "1", Title: "one"}, {ID: "2", Title: "two"}, {ID: "3", Title: "ad"}}, Cursor{}, Cursor{FirstSeenDone: true})
	require.NoError(t, err)
	var reasons []string
	for _, item := range batch.Items {
		reasons = append(reasons, item.SkipReason)
	}
	require.Equal(t, []string{"backfill", "", "exclude"}, reasons)
	require.JSONEq(t, `{"more": true}`, string(batch.Items[1].Cursor), "a first sight that breaks off is still one, and the source stays leased")
	require.JSONEq(t, `{"first_seen_done": true, "last_seen_id": "3"}`, string(batch.Items[2].Cursor))
}

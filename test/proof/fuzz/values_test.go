package fuzz

import (
	_ "embed"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"autopost/internal/api"
	"autopost/internal/pg"
	"autopost/internal/testing/pgtest"
	"autopost/internal/testing/posttest"
)

// hostile are values that try to be more than text: one JSON string per line.
//
//go:embed hostile_values.txt
var hostile string

const (
	// other is the value of another placeholder. A value that is searched for placeholders shows it once more.
	other = "OtherValue7"
	// eventLimit is the most characters of a text of an event, as X counts them.
	eventLimit = 260
)

var (
	mention   = regexp.MustCompile(`(^|[^A-Za-z0-9_])[@＠][A-Za-z0-9_]`)
	invisible = regexp.MustCompile(`[\p{Cc}\p{Cf}\x{00AD}\x{034F}\x{115F}\x{1160}\x{17B4}\x{17B5}\x{180B}-\x{180F}\x{2028}\x{2029}\x{3164}\x{FE00}-\x{FE0F}\x{FFA0}\x{E0000}-\x{E0FFF}]`)
	reversing = regexp.MustCompile(`[\x{202A}-\x{202E}\x{2066}-\x{2069}]`)
)

// FuzzValues puts any value into every placeholder of every kind of template: the value is never searched for placeholders,
// never a mention, never markup, and the text is never too long.
func FuzzValues(f *testing.F) {
	for line := range strings.Lines(hostile) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			var value string
			if err := json.Unmarshal([]byte(line), &value); err != nil {
				f.Fatalf("%s: %v", line, err)
			}
			f.Add(value)
		}
	}
	db := pgtest.New(f)
	posttest.Workspace(db, "w")
	store, err := pg.Open(f.Context(), pg.Options{URL: db.URL("")})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(store.Close)
	db.Exec(`select autopost.put_template('w', 'own', '*', '{"body": "{title} / {detail?} / {other}", "sanitize": ["title", "detail", "other"]}', 'olga', 'a test')`)
	db.Exec(`select autopost.put_event_type('w', 'own.event', '{"template_id": "own"}', 'olga', 'a test', false)`)
	f.Fuzz(func(t *testing.T, value string) {
		if value == "" || strings.ContainsRune(value, 0) {
			return
		}
		for kind, vars := range map[string][]string{"image": {"avatar_name", "prompt", "short_hash"}, "video": {"title", "avatar_name"},
			"combat": {"winner_name", "loser_name", "rounds", "summary"}} {
			event(t, store, kind, vars, value)
		}
		own(t, store, value)
		for mode, platform := range map[string]string{"None": "x", "HTML": "telegram", "Markdown": "max"} {
			post(t, store, mode, platform, value)
		}
	})
}

// event puts a value into all placeholders but one of a template of Global X.
func event(t *testing.T, store *pg.Store, kind string, vars []string, value string) {
	t.Helper()
	body, values := "", map[string]string{}
	for n, v := range vars {
		body += "<{" + v + "}> "
		values[v] = value
		if n == len(value)%len(vars) {
			values[v] = other
		}
	}
	raw, err := json.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := store.PreviewXPost(t.Context(), "w", kind, &body, raw)
	ours(t, err)
	var shown pg.Preview
	if err == nil {
		if err := json.Unmarshal(answer, &shown); err != nil {
			t.Fatal(err)
		}
	}
	judge(t, kind, shown, 1, strings.Repeat(value, len(vars)-1))
	if shown.Status == "ok" && shown.Length > eventLimit {
		t.Fatalf("%s: %q has %d characters", kind, shown.Text, shown.Length)
	}
}

// own puts a value into an event of an own type.
func own(t *testing.T, store *pg.Store, value string) {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"event": "own.event", "payload": map[string]any{"title": value, "detail": value, "other": other}})
	if err != nil {
		t.Fatal(err)
	}
	written, err := store.SubmitEvent(t.Context(), act, "", raw)
	ours(t, err)
	if err != nil || strings.Contains(string(written.Answer), `"rejected"`) {
		return
	}
	rows, err := pg.List[struct{ ResolvedContent string }](t.Context(), store, pg.Query{Function: "list_x_posts", Workspace: "w", Limit: 1})
	if err != nil || len(rows) != 1 {
		t.Fatal(err, rows)
	}
	judge(t, "own type", pg.Preview{Status: "ok", Text: rows[0].ResolvedContent}, 1, value+value)
}

// elements are those of the template of post in a mode.
var elements = map[string]string{"HTML": "b /b a /a", "Markdown": "b /b a /a"}

// post puts a value into a template of posts.
func post(t *testing.T, store *pg.Store, mode, platform, value string) {
	t.Helper()
	draft := pg.Template{Body: "**{title}** [{other}](https://example.org/?q={detail?})", Vars: []string{"title", "other", "detail"}, Sanitize: []string{"title", "detail"},
		ParseMode: mode, MaxLength: 200}
	if mode == "HTML" {
		draft.Body = `<b>{title}</b> <a href="https://example.org/?q={detail?}">{other}</a>`
	}
	raw, err := json.Marshal(map[string]any{"template": map[string]any{"vars": map[string]string{"title": value, "detail": value, "other": other}}})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := store.PreviewTemplate(t.Context(), "w", api.TemplateKey{ID: "draft", Platform: platform}, &draft, raw)
	ours(t, err)
	var shown pg.Preview
	if err == nil {
		if err := json.Unmarshal(answer, &shown); err != nil {
			t.Fatal(err)
		}
	}
	judge(t, platform+" "+mode, shown, 1, value+value)
	if shown.Status != "ok" || mode == "None" {
		return
	}
	balanced(t, shown.Text)
	if !shown.Truncated && names(shown.Text) != elements[mode] {
		t.Fatalf("%s %s: %q has other elements than its template", platform, mode, shown.Text)
	}
}

// names returns the elements of a text in order.
func names(text string) string {
	var all []string
	for _, m := range tag.FindAllStringSubmatch(text, -1) {
		all = append(all, m[1]+m[2])
	}
	return strings.Join(all, " ")
}

// judge checks a rendered text: others is how often the text may have the other value, apart from those in the value.
func judge(t *testing.T, what string, shown pg.Preview, others int, value string) {
	t.Helper()
	if shown.Status != "ok" {
		return
	}
	if found := strings.Count(shown.Text, other) - strings.Count(invisible.ReplaceAllString(value, ""), other); found > others {
		t.Fatalf("%s: %q has a value that was searched for placeholders", what, shown.Text)
	}
	if plain := invisible.ReplaceAllString(shown.Text, ""); mention.MatchString(plain) {
		t.Fatalf("%s: %q mentions somebody", what, shown.Text)
	}
	if reversing.MatchString(shown.Text) {
		t.Fatalf("%s: %q is reversed", what, shown.Text)
	}
	if shown.Limit > 0 && shown.Length > shown.Limit {
		t.Fatalf("%s: %q has %d of %d", what, shown.Text, shown.Length, shown.Limit)
	}
}

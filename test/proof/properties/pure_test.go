package properties

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"autopost/internal/testing/pgtest"
)

// offends runs a query that names offenders and fails with the first.
func offends(t *rapid.T, s *pgtest.Session, what, sql string, args ...any) {
	t.Helper()
	pending := s.Start(sql, args...)
	if err := pending.Err(); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if rows := pending.Wait(); len(rows) > 0 {
		t.Fatalf("%s: %v", what, rows[0])
	}
}

func marshal(t *rapid.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return string(text)
}

// words that normalising and markup have rules for.
var words = rapid.SampledFrom([]string{"a", "Ä", "ﬁ", "ß", "*b*", "**b**", "_i_", "<b>b</b>", "<b>", "&amp;", "&", "`c`", "[t](https://x.example/?b=2&a=1)",
	"https://EXAMPLE.org/Path/?utm_source=x&b=1#f", "http://пример.рф/", "\u00a0", "\u200b", "\ufeff", "\r\n", "\n\n\n", "\t", "  ", "#tag", "@name", "e\u0301", "👩‍👩‍👧", "\u202e", "~~s~~", "> q", "\\*"})

var texts = rapid.Map(rapid.SliceOfN(rapid.OneOf(words, rapid.StringN(0, 4, 12)), 0, 12), func(parts []string) string {
	return strings.ReplaceAll(strings.Join(parts, ""), "\x00", "")
})

var posts = rapid.Custom(func(t *rapid.T) map[string]any {
	p := map[string]any{"text": texts.Draw(t, "text")}
	if mode := rapid.SampledFrom([]string{"", "None", "HTML", "Markdown"}).Draw(t, "mode"); mode != "" {
		p["parse_mode"] = mode
	}
	if rapid.Bool().Draw(t, "link") {
		p["link"] = rapid.SampledFrom([]string{"https://Example.org", "https://example.org:443/a/../b?z=1&a=2", " https://example.org/%7Ea "}).Draw(t, "at")
	}
	if rapid.Bool().Draw(t, "media") {
		p["media"] = []any{map[string]any{"type": "image", "url": "https://Example.org/A.png?x", "caption": texts.Draw(t, "caption"), "alt": texts.Draw(t, "alt")}}
	}
	variant := map[string]any{"text": texts.Draw(t, "variant")}
	if rapid.Bool().Draw(t, "thread") {
		p["thread"], p["first_comment"] = []any{map[string]any{"text": texts.Draw(t, "part")}, map[string]any{"text": "b", "media": []int{}}}, texts.Draw(t, "comment")
		variant["thread"], variant["first_comment"] = rapid.SampledFrom([]any{nil, []any{}, []any{map[string]any{"text": " c "}}}).Draw(t, "own"), nil
	}
	if rapid.Bool().Draw(t, "variants") {
		p["variants"] = map[string]any{"telegram": variant}
	}
	return p
})

// Normal content does not change, so a post that comes back from our rows or through another
// endpoint has the same hash.
func TestNormalisingTwiceIsNormalisingOnce(t *testing.T) {
	t.Parallel()
	session := pgtest.New(t).Session("pure", "")
	rapid.Check(t, func(t *rapid.T) {
		some := rapid.SliceOfN(posts, 10, 60).Draw(t, "posts")
		offends(t, session, "normalising again changes it", `
			select r.value, n.once, autopost.normalize_payload(n.once)
			from jsonb_array_elements($1::jsonb) r
			cross join lateral (select autopost.normalize_payload(r.value) as once) n
			where autopost.payload_errors(r.value) = '[]' and autopost.normalize_payload(n.once) <> n.once limit 1`, marshal(t, some))
	})
}

// shuffled writes an object with its keys in another order.
func shuffled(t *rapid.T, v any) string {
	switch v := v.(type) {
	case map[string]any:
		var keys []string
		for key := range v {
			keys = append(keys, key)
		}
		var parts []string
		for _, key := range rapid.Permutation(keys).Draw(t, "keys") {
			parts = append(parts, marshal(t, key)+" : "+shuffled(t, v[key]))
		}
		return "{" + strings.Join(parts, " ,") + "}"
	case []any:
		var parts []string
		for _, e := range v {
			parts = append(parts, shuffled(t, e))
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	return marshal(t, v)
}

func TestHashDoesNotKnowTheOrderOfKeys(t *testing.T) {
	t.Parallel()
	session := pgtest.New(t).Session("pure", "")
	rapid.Check(t, func(t *rapid.T) {
		post := posts.Draw(t, "post")
		offends(t, session, "another order, another hash", `
			select $1::jsonb where autopost.payload_errors($1::jsonb) = '[]' and autopost.content_hash(autopost.normalize_payload($1::jsonb))
			<> autopost.content_hash(autopost.normalize_payload($2::jsonb))`, marshal(t, post), shuffled(t, post))
	})
}

// secrets and the places where they turn up.
var (
	botTokens = rapid.StringMatching(`[1-9][0-9]{7,9}:[A-Za-z0-9_-]{35}`)
	keys      = rapid.StringMatching(`[A-Za-z0-9]{12,24}`)
	leaks     = rapid.Custom(func(t *rapid.T) [2]string {
		token, key := botTokens.Draw(t, "token"), keys.Draw(t, "key")
		space := rapid.SampledFrom([]string{" ", "  ", "\t", "\n", "\r\n"}).Draw(t, "space")
		return rapid.SampledFrom([][2]string{
			{token, token}, {token, "https://api.example.org/bot" + token + "/sendMessage"}, {token, "post \"" + token + "\": EOF"},
			{key, "Authorization: " + key}, {key, "authorization:" + space + "Bearer" + space + key}, {key, "Bearer" + space + key}, {key, "Basic" + space + key},
			{key, "access_token=" + key}, {key, "?a=1&client_secret=" + key + "&b=2"}, {key, `{"refresh_token": "` + key + `"}`}, {key, "password: " + key},
			{key, "API_KEY=" + key}, {key + "@example.org", "mail " + key + "@example.org bounced"}, {"+4915112345678", "call +4915112345678"},
		}).Draw(t, "place")
	})
)

func TestRedactingLeaksNothingAndSettles(t *testing.T) {
	t.Parallel()
	session := pgtest.New(t).Session("pure", "")
	rapid.Check(t, func(t *rapid.T) {
		var some []any
		for n := range 40 {
			leak := leaks.Draw(t, fmt.Sprint("leak ", n))
			before, after := texts.Draw(t, "before"), texts.Draw(t, "after")
			some = append(some, map[string]any{"secret": leak[0], "text": before + " " + leak[1] + " " + after})
		}
		all := marshal(t, some)
		offends(t, session, "a secret is left", `
			select r.value, autopost.redact(r.value ->> 'text') from jsonb_array_elements($1::jsonb) r
			where strpos(autopost.redact(r.value ->> 'text'), r.value ->> 'secret') > 0 limit 1`, all)
		offends(t, session, "a secret is left inside JSON", `
			select r.value, autopost.redact(jsonb_build_object('message', r.value -> 'text')) from jsonb_array_elements($1::jsonb) r
			where strpos(autopost.redact(jsonb_build_object('message', r.value -> 'text')) ->> 'message', r.value ->> 'secret') > 0 limit 1`, all)
		offends(t, session, "redacting again changes it", `
			select r.value, autopost.redact(r.value ->> 'text'), autopost.redact(autopost.redact(r.value ->> 'text')) from jsonb_array_elements($1::jsonb) r
			where autopost.redact(autopost.redact(r.value ->> 'text')) <> autopost.redact(r.value ->> 'text') limit 1`, all)
	})
}

var zones = rapid.SampledFrom([]string{"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Cairo", "Asia/Kolkata", "Pacific/Apia", "America/Havana", "Atlantic/Azores"})

// instants, most of them near where some zone changes its clock.
var instants = rapid.Custom(func(t *rapid.T) string {
	near := rapid.SampledFrom([]string{"2026-03-08", "2026-03-29", "2026-04-05", "2026-04-24", "2026-06-15", "2026-10-04", "2026-10-25", "2026-10-30", "2026-11-01"}).Draw(t, "day")
	day, err := time.Parse(time.DateOnly, near)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return day.Add(time.Duration(rapid.IntRange(-48*60, 48*60).Draw(t, "minutes")) * time.Minute).Format(time.RFC3339)
})

var weeks = rapid.Custom(func(t *rapid.T) map[string]any {
	hours := rapid.SampledFrom([]string{"00:00", "00:30", "01:30", "02:00", "02:15", "02:30", "03:00", "09:00", "18:00", "23:00", "23:30"})
	week := map[string]any{}
	for _, day := range []string{"mon", "tue", "wed", "thu", "fri", "sat", "sun"} {
		spans := []any{}
		for range rapid.IntRange(0, 2).Draw(t, "spans") {
			spans = append(spans, []string{hours.Draw(t, "from"), rapid.OneOf(hours, rapid.Just("24:00")).Draw(t, "until")})
		}
		week[day] = spans
	}
	return week
})

// The next opening is not before the instant asked for, is open itself, and never comes
// earlier for who asks later.
func TestNextOpeningIsOpenAndInOrder(t *testing.T) {
	t.Parallel()
	session := pgtest.New(t).Session("pure", "")
	rapid.Check(t, func(t *rapid.T) {
		zone, week := zones.Draw(t, "zone"), marshal(t, weeks.Draw(t, "week"))
		at := rapid.SliceOfN(instants, 10, 40).Draw(t, "instants")
		offends(t, session, "the next opening", `
			with asked as (select u.at, autopost.next_open($1, $2::jsonb, u.at) as opens from unnest($3::timestamptz[]) u (at)),
			paired as (select a.*, lag(a.opens) over (order by a.at) as before from asked a)
			select t.at, t.opens, t.before, autopost.next_open($1, $2::jsonb, t.opens) from paired t
			where t.opens < t.at or t.before > t.opens or autopost.next_open($1, $2::jsonb, t.opens) <> t.opens limit 1`, zone, week, at)
	})
}

func TestIdsSortByTime(t *testing.T) {
	t.Parallel()
	session := pgtest.New(t).Session("pure", "")
	rapid.Check(t, func(t *rapid.T) {
		micros := rapid.SliceOfNDistinct(rapid.Int64Range(1_700_000_000_000_000, 1_700_000_000_100_000), 2, 60, rapid.ID[int64]).Draw(t, "micros")
		offends(t, session, "an id out of order", `
			with made as (select m.us, autopost.uuid_v7_of('epoch'::timestamptz + m.us * interval '1 microsecond', gen_random_uuid()::text) as id from unnest($1::bigint[]) m (us)),
			paired as (select m.*, lag(m.id) over (order by m.us) as before from made m)
			select t.* from paired t where t.before >= t.id or substr(t.id::text, 15, 1) <> '7' limit 1`, micros)
	})
}

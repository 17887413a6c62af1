package fuzz

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"autopost/internal/sim/twitter"
	"autopost/internal/testing/pgtest"
)

// A word is one of each: what is before a link, its scheme, its host, and what follows.
var (
	befores = []string{"", "", "", "(", "\"", "«", "漢", "é", "#", "@", "$", "👍🏽", "🇷🇺"}
	schemes = []string{"", "", "http://", "https://", "HTTP://"}
	hosts   = []string{"google.com", "google.рф", "пример.рф", "example.co.jp", "例え.みんな", "a.xn--p1ai", "t.co", "a-b.org", "a.zz", "sub.domain.example.net", "привет", "word", "1.5", "3.14", "é.fr", "❤\ufe0f"}
	tails   = []string{"", "", "/", "/a", "/a?q=1", "/(a)", "/путь", ",", ".", "!", ")", "…", ":", "/a.", "/a#b"}
)

// The weighted length of usual words and links in SQL is that of the simulator of X, which shares no code with it.
func FuzzLength(f *testing.F) {
	conn, err := pgx.Connect(f.Context(), pgtest.New(f).URL(""))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = conn.Close(context.Background()) })
	for n := range len(hosts) * len(tails) {
		f.Add([]byte{byte(n), byte(n), byte(n), byte(n / len(hosts)), byte(n + 1), byte(n), byte(n), 3})
	}
	f.Fuzz(func(t *testing.T, choice []byte) {
		var words []string
		for ; len(choice) >= 4 && len(words) < 20; choice = choice[4:] {
			pick := func(from []string, n byte) string { return from[int(n)%len(from)] }
			words = append(words, pick(befores, choice[0])+pick(schemes, choice[1])+pick(hosts, choice[2])+pick(tails, choice[3]))
		}
		text := strings.Join(words, " ")
		var got int
		if err := conn.QueryRow(t.Context(), `select autopost.weighted_length($1)`, text).Scan(&got); err != nil {
			t.Fatal(err)
		}
		if want := twitter.WeightedLength(text); got != want {
			t.Errorf("%q has the weight %d in SQL, %d at the platform", text, got, want)
		}
	})
}

package db_test

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
)

func readVectors[T any](t *testing.T, name string) []T {
	t.Helper()
	text, err := os.ReadFile("tests/vectors/" + name)
	require.NoError(t, err)
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	var vectors []T
	require.NoError(t, decoder.Decode(&vectors))
	require.NotEmpty(t, vectors)
	return vectors
}

func TestVectorsOfURLs(t *testing.T) {
	t.Parallel()
	base := pgtest.New(t)
	for _, v := range readVectors[struct {
		In  string  `json:"in"`
		Out *string `json:"out"`
	}](t, "urls.json") {
		got := pgtest.Value[*string](base, `select autopost.canonical_url($1)`, v.In)
		if diff := gocmp.Diff(v.Out, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", v.In, diff)
		}
		if got != nil {
			require.Equal(t, *got, pgtest.Value[string](base, `select autopost.canonical_url($1)`, *got), "canonical twice is canonical")
		}
	}
}

// payloadVector: the normal form of a raw payload, and the hash of its content,
// which is compared with what Go makes of the same rules.
type payloadVector struct {
	Name        string          `json:"name"`
	Hash        string          `json:"hash"`
	Raw         json.RawMessage `json:"raw"`
	Normal      map[string]any  `json:"normal"`
	SameAs      string          `json:"same_as"`
	DiffersFrom string          `json:"differs_from"`
}

func TestVectorsOfPayloads(t *testing.T) {
	t.Parallel()
	base := pgtest.New(t)
	hashes := map[string]string{}
	for _, v := range readVectors[payloadVector](t, "payloads.json") {
		require.Equal(t, "[]", pgtest.Value[string](base, `select autopost.payload_errors($1::jsonb)::text`, string(v.Raw)), v.Name)
		normal := base.JSON(`select autopost.normalize_payload($1::jsonb)`, string(v.Raw))
		if diff := gocmp.Diff(v.Normal, normal); diff != "" {
			t.Errorf("%s (-want +got):\n%s", v.Name, diff)
			continue
		}
		hash := pgtest.Value[string](base, `select autopost.content_hash(autopost.normalize_payload($1::jsonb))`, string(v.Raw))
		require.Equal(t, v.Hash, hash, "%s: a hash changes with hash_version alone", v.Name)
		require.Equal(t, contentHash(v.Normal), hash, v.Name)
		again, err := json.Marshal(normal)
		require.NoError(t, err)
		require.Equal(t, hash, pgtest.Value[string](base, `select autopost.content_hash(autopost.normalize_payload($1::jsonb))`, string(again)), "%s: the normal form of the normal form", v.Name)
		switch {
		case v.SameAs != "":
			require.Equal(t, hashes[v.SameAs], hash, "%s is the same content as %s", v.Name, v.SameAs)
		case v.DiffersFrom != "":
			require.NotEqual(t, hashes[v.DiffersFrom], hash, "%s is other content than %s", v.Name, v.DiffersFrom)
		}
		hashes[v.Name] = hash
	}
	// One literal, so that both sides cannot drift together. It changes with hash_version.
	require.Equal(t, "v1 "+hex.EncodeToString(sum(`{"text": "Hello", "type": "text", "media": []}`)), "v1 "+hashes["plain"])
}

func sum(text string) []byte {
	digest := sha256.Sum256([]byte(text))
	return digest[:]
}

// contentHash is content_hash of a normal form, written a second time.
func contentHash(normal map[string]any) string {
	content := maps.Clone(normal)
	delete(content, "disable_preview")
	media := []any{}
	if items, ok := normal["media"].([]any); ok {
		for _, item := range items {
			medium := maps.Clone(item.(map[string]any))
			for _, field := range []string{"url", "blob_ref", "file_id", "attachment_token", "auth_ref", "meta"} {
				delete(medium, field)
			}
			media = append(media, medium)
		}
	}
	content["media"] = media
	var text strings.Builder
	writeCanonical(&text, content)
	return hex.EncodeToString(sum(text.String()))
}

// writeCanonical writes the text that PostgreSQL gives a jsonb: keys by length,
// then by bytes; a space after each colon and comma.
func writeCanonical(out *strings.Builder, value any) {
	switch v := value.(type) {
	case map[string]any:
		out.WriteByte('{')
		for i, key := range slices.SortedFunc(maps.Keys(v), func(a, b string) int {
			return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
		}) {
			if i > 0 {
				out.WriteString(", ")
			}
			writeCanonical(out, key)
			out.WriteString(": ")
			writeCanonical(out, v[key])
		}
		out.WriteByte('}')
	case []any:
		out.WriteByte('[')
		for i, element := range v {
			if i > 0 {
				out.WriteString(", ")
			}
			writeCanonical(out, element)
		}
		out.WriteByte(']')
	default:
		encoder := json.NewEncoder(out)
		encoder.SetEscapeHTML(false)
		_ = encoder.Encode(v) // strings and booleans
		text := strings.TrimSuffix(out.String(), "\n")
		out.Reset()
		out.WriteString(text)
	}
}

type markupVector struct {
	Name     string `json:"name"`
	Mode     string `json:"mode"`
	Text     string `json:"text"`
	Telegram string `json:"telegram"`
	MAX      string `json:"max"`
	Plain    string `json:"plain"`
	Error    string `json:"error"`
}

func TestVectorsOfMarkup(t *testing.T) {
	t.Parallel()
	base := pgtest.New(t)
	for _, v := range readVectors[markupVector](t, "markup.json") {
		for dialect, want := range map[string]string{"telegram_html": v.Telegram, "max_html": v.MAX, "plain": v.Plain} {
			got := base.JSON(`select autopost.render_text($1, null, nullif($2, ''), $3)`, v.Text, v.Mode, dialect)
			if v.Error != "" {
				require.Equal(t, map[string]any{"error": v.Error}, got, "%s in %s", v.Name, dialect)
				continue
			}
			if diff := gocmp.Diff(map[string]any{"text": want, "plain": v.Plain}, got); diff != "" {
				t.Errorf("%s in %s (-want +got):\n%s", v.Name, dialect, diff)
			}
		}
	}
}

package api_test

import (
	"encoding/json"
	"html"
	"io/fs"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/db"
	"autopost/internal/api"
	"autopost/internal/problem"
)

// described is the part of the OpenAPI document that these tests read.
type described struct {
	Servers []struct{ URL string }
	Tags    []struct{ Name, Description string }
	Paths   map[string]map[string]struct {
		OperationID string
		Tags        []string
		Parameters  []struct{ Name, Description string }
		RequestBody *struct {
			Content map[string]struct {
				Schema struct {
					Ref string `json:"$ref"`
				}
			}
		}
	}
	Components struct {
		Schemas map[string]struct {
			Properties map[string]struct {
				Ref         string `json:"$ref"`
				Description string
			}
		}
		Responses map[string]struct{ Description string }
	}
}

func describe(t *testing.T) (d described) {
	t.Helper()
	text, err := api.Description()
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &d))
	return d
}

// fields returns the names of the fields of a schema.
func (d described) fields(schema string) []string {
	return slices.Sorted(maps.Keys(d.Components.Schemas[schema].Properties))
}

// Every field, parameter and tag has a description, and every body has a schema with fields.
func TestEveryFieldIsDescribed(t *testing.T) {
	t.Parallel()
	d := describe(t)
	require.NotEmpty(t, d.Servers)
	for name, schema := range d.Components.Schemas {
		for field, property := range schema.Properties {
			require.True(t, property.Description != "" || property.Ref != "", "%s.%s has no description: add the tag doc, or a line in meanings.go", name, field)
		}
	}
	tags := map[string]bool{}
	for _, tag := range d.Tags {
		require.NotEmpty(t, tag.Description, tag.Name)
		tags[tag.Name] = true
	}
	used := map[string]bool{}
	for _, methods := range d.Paths {
		for _, o := range methods {
			for _, p := range o.Parameters {
				require.NotEmpty(t, p.Description, "%s: %s has no description", o.OperationID, p.Name)
			}
			for _, tag := range o.Tags {
				require.True(t, tags[tag], "%s: the tag %s has no line in resources (meanings.go)", o.OperationID, tag)
				used[tag] = true
			}
			if o.RequestBody == nil {
				continue
			}
			for kind, media := range o.RequestBody.Content {
				schema := strings.TrimPrefix(media.Schema.Ref, "#/components/schemas/")
				require.True(t, kind == "application/octet-stream" || len(d.fields(schema)) > 0, "%s: the body has no fields", o.OperationID)
			}
		}
	}
	require.Equal(t, tags, used)
}

// The answers describe every kind of problem of the API.
func TestEveryProblemIsDescribed(t *testing.T) {
	t.Parallel()
	d := describe(t)
	for _, k := range problem.Catalogue() {
		if !strings.Contains(k.Where, "API") || k.Status == http.StatusMethodNotAllowed {
			continue // another method is not an operation of the document
		}
		found := slices.ContainsFunc(slices.Collect(maps.Values(d.Components.Responses)), func(r struct{ Description string }) bool {
			return strings.Contains(r.Description, "`"+k.Slug+"`: "+k.Meaning)
		})
		require.True(t, found, k.Slug)
	}
}

// The fields of a post are those that the database knows: it warns of all others.
func TestFieldsOfAPostAreThoseOfTheDatabase(t *testing.T) {
	t.Parallel()
	d := describe(t)
	text := func(path string) string {
		sql, err := fs.ReadFile(db.Functions, "functions/post/"+path)
		require.NoError(t, err)
		return string(sql)
	}
	names := func(pattern, text string) []string {
		found := regexp.MustCompile(pattern).FindStringSubmatch(text)
		require.NotNil(t, found, pattern)
		return slices.Sorted(strings.FieldsFuncSeq(found[1], func(r rune) bool { return strings.ContainsRune("', \n\t", r) }))
	}
	errors := text("payload_errors.sql")
	require.Equal(t, names(`(?s)jsonb_object_keys\(p_raw\) f \(key\)\s+where f\.key not in \((.*?)\)`, errors), d.fields("Post"))
	require.Equal(t, names(`(?s)parts_of\(m\.value, 'object'\)\) f \(key\)\s+where f\.key not in \((.*?)\)`, errors), d.fields("Medium"))
	require.Equal(t, names(`(?s)parts_of\(b\.value, 'object'\)\) f \(key\)\s+where f\.key not in \((.*?)\)`, errors), d.fields("Button"))
	require.Equal(t, names(`(?s)'template', 'object'\)\) f \(key\)\s+where f\.key not in \((.*?)\)`, errors), d.fields("PostTemplate"))
	require.Equal(t, names(`(?s)parts_of\(t\.value, 'object'\)\) f \(key\)\s+where f\.key not in \((.*?)\)`, errors), d.fields("ThreadPart"))
	require.Equal(t, names(`(?s)jsonb_object_keys\(p_routing\) f \(key\)\s+where f\.key not in \((.*?)\)`, errors), d.fields("Routing"))
	require.Equal(t, names(`(?s)v_condition\.key not in \((.*?)\)`, text("routing.sql")), d.fields("RouteFilter"))
	variant := slices.Concat(names(`(?s)parts_of\(v\.value, 'object'\)\) f \(key\)\s+where f\.key not in \((.*?)\)`, errors),
		names(`'\{(.*?)\}'::text\[\]`, text("post_variant.sql")), names(`'\{(.*?)\}'::text\[\]`, text("video_variant.sql")))
	slices.Sort(variant)
	require.Equal(t, variant, d.fields("Variant"))
}

// The page shows the fields of bodies and answers, with their meanings.
func TestDocsShowEveryField(t *testing.T) {
	t.Parallel()
	page := html.UnescapeString(ask(deps(&store{}), "GET", "/docs", "").Body.String())
	for _, row := range []string{
		"<code>media[].blob_ref</code></td>", "<code>routing.include_channels</code></td><td>list of text</td><td>Only these channels.",
		"<code>variants.*.captions[].language</code>", "<code>route_filter.include_any</code>", "<code>posting_window</code></td><td>object or null</td><td>Posting window as JSON",
		"<code>items[].last_error.retry_after_ms</code></td><td>integer</td><td>The wait that the platform asked for", "<code>secret_hash</code>",
		`<a href="#problem-other-request">`, "<code>other-request</code></td><td>The `Idempotency-Key` belongs to another request.</td><td>Send a new key with each write.",
	} {
		require.True(t, strings.Contains(page, row), row)
	}
}

package web

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/problem"
)

var (
	comment   = regexp.MustCompile(`--.*`)
	refusing  = regexp.MustCompile(`(?s)(?:['"]applied['"](?:, |: )false|v_refus(?:al|ed) :?=|v_reason :?=).*?;`)
	reasonOf  = regexp.MustCompile(`(?:'reason', |then |else |"reason": )['"]([a-z_]+)['"]`)
	notOnPage = map[string]string{
		"unchanged": "not a refusal", "stale": "daemons", "orphans": "autopost database strict", "being_removed": "file jobs", "not_yours": "file jobs",
		"prepared": "file jobs", "not_approved": "file jobs", "known": "file jobs", "leased": "file jobs", "other_source": "file jobs", "publishing": "file jobs",
		"shadow_mode": "an answer of domain events", "not_restored": "autopost restore",
	}
)

// refusalCodes are the codes with which the functions for people refuse a change.
func refusalCodes(t *testing.T) (codes []string) {
	t.Helper()
	for _, folder := range []string{"admin", "moderation", "ingest"} {
		files, err := filepath.Glob("../../db/functions/" + folder + "/*.sql")
		require.NoError(t, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			for _, statement := range refusing.FindAllString(comment.ReplaceAllString(string(text), ""), -1) {
				for _, m := range reasonOf.FindAllStringSubmatch(statement, -1) {
					codes = append(codes, m[1])
				}
			}
		}
	}
	return codes
}

// A refusal has words in each language: those of the database by code, those of the API by type, and those of single
// deliveries by code.
func TestRefusalsHaveWords(t *testing.T) {
	t.Parallel()
	codes := refusalCodes(t)
	require.Greater(t, len(codes), 60)
	for _, code := range codes {
		if strings.HasPrefix(code, "unknown_") || notOnPage[code] != "" {
			continue
		}
		for name, l := range languages {
			require.NotEmpty(t, l.words["refused."+code], "%s has no words in %s", code, name)
		}
	}

	used := map[string]bool{}
	for _, k := range problem.Catalogue() {
		if k.Where == "API" || k.Where == "endpoints and API" || k == problem.Gone {
			used["problem."+k.Slug] = true
		}
	}
	text, err := os.ReadFile("../../docs/reference/openapi.json")
	require.NoError(t, err)
	var described struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]struct {
					Enum []any `json:"enum"`
				} `json:"properties"`
			} `json:"schemas"`
		} `json:"components"`
	}
	require.NoError(t, json.Unmarshal(text, &described))
	for area, schema := range map[string]string{"move.": "MovedOfOne", "change.": "AskedOfOne"} {
		reasons := described.Components.Schemas[schema].Properties["reason"].Enum
		require.NotEmpty(t, reasons, schema)
		for _, code := range reasons {
			used[area+code.(string)] = true
		}
	}
	for name := range languages {
		if name == "en" {
			continue // the API says it
		}
		for key := range used {
			require.NotEmpty(t, refusalTexts[name][key], "%s has no text in %s", key, name)
		}
		for key := range refusalTexts[name] {
			require.True(t, used[key], "no refusal has the text %s", key)
		}
	}
}

// Each kind of alert has a button to the page on which a person ends it, except those that need the machine.
func TestAlertsHaveButtons(t *testing.T) {
	t.Parallel()
	ofTheMachine := map[string]bool{
		"autopost_wake": true, "clock_jumped": true, "disk_low": true, "events_without_partition": true, "orphans": true, "partitions_missing": true,
	}
	text, err := os.ReadFile("../../db/functions/core/alerts.sql")
	require.NoError(t, err)
	kinds := regexp.MustCompile(`\('([a-z_]+)', '(?:warning|error|critical)'`).FindAllStringSubmatch(string(text), -1)
	require.Greater(t, len(kinds), 30)
	for _, kind := range kinds {
		button := remedies[kind[1]]
		require.Equal(t, !ofTheMachine[kind[1]], button.to != "", kind[1])
		for name, l := range languages {
			require.True(t, button.to == "" || l.words["operations.remedy."+button.word] != "", "%s in %s", kind[1], name)
		}
	}
}

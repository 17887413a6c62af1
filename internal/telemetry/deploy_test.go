package telemetry

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// described parses the text of a description; prometheus.Desc has no fields.
var described = regexp.MustCompile(`fqName: "(autopost_\w+)", help: "(.*?)",.* constLabels: \{(.*?)\}, variableLabels: \{(.*?)\}`)

// catalogue returns a line of the documented table for each metric, by name.
func catalogue() map[string]string {
	w := NewRecorder(nil)
	w.Queue(nil)
	w.Connections(nil)
	w.Disks(nil)
	w.Bots(nil)
	descriptions := make(chan *prometheus.Desc)
	go func() {
		defer close(descriptions)
		w.registry.Describe(descriptions)
	}()
	lines := map[string]string{}
	for d := range descriptions {
		if found := described.FindStringSubmatch(d.String()); found != nil {
			labels := found[4]
			if found[3] != "" {
				labels, _, _ = strings.Cut(found[3], "=")
			}
			lines[found[1]] = fmt.Sprintf("| `%s` | %s | %s |", found[1], strings.ReplaceAll(labels, ",", ", "), found[2])
		}
	}
	return lines
}

func TestMetricsAreDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/operate/observe.md")
	require.NoError(t, err)
	var want []string
	for _, line := range catalogue() {
		want = append(want, line)
	}
	slices.Sort(want)
	got := regexp.MustCompile("(?m)^\\| `autopost_.*$").FindAllString(string(page), -1)
	require.Equal(t, strings.Join(want, "\n"), strings.Join(got, "\n"), "the table of docs/operate/observe.md")
}

// ours finds names of metrics in expressions.
var ours = regexp.MustCompile(`\bautopost_[a-z_]+`)

func requireKnown(t *testing.T, expression string) {
	t.Helper()
	known := catalogue()
	names := ours.FindAllString(expression, -1)
	require.NotEmpty(t, names, expression)
	for _, name := range names {
		if _, ok := known[name]; !ok {
			name = regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
		}
		require.Contains(t, known, name, expression)
	}
}

func TestAlertRulesUseExistingMetrics(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../deploy/prometheus/alerts.yml")
	require.NoError(t, err)
	var file struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	decoder := yaml.NewDecoder(strings.NewReader(string(text)))
	decoder.KnownFields(true)
	require.NoError(t, decoder.Decode(&file))
	require.NotEmpty(t, file.Groups)
	for _, rule := range file.Groups[0].Rules {
		requireKnown(t, rule.Expr)
		require.Contains(t, []string{"warning", "critical"}, rule.Labels["severity"], rule.Alert)
		require.NotEmpty(t, rule.Annotations["summary"], rule.Alert)
		require.NotEmpty(t, rule.Annotations["remedy"], rule.Alert)
		require.Equal(t, strings.Count(rule.Expr, "("), strings.Count(rule.Expr, ")"), rule.Alert)
	}
}

func TestDashboardUsesExistingMetrics(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../deploy/grafana/autopost.json")
	require.NoError(t, err)
	var board struct {
		Title  string
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	require.NoError(t, json.Unmarshal(text, &board))
	require.Equal(t, "autopost", board.Title)
	shown := ""
	for _, panel := range board.Panels {
		require.NotEmpty(t, panel.Targets, panel.Title)
		for _, target := range panel.Targets {
			requireKnown(t, target.Expr)
			require.Equal(t, strings.Count(target.Expr, "("), strings.Count(target.Expr, ")"), panel.Title)
			shown += target.Expr
		}
	}
	for name := range catalogue() {
		if name != "autopost_http_request_seconds" && name != "autopost_queue_due_deliveries" && name != "autopost_queue_in_flight" && name != "autopost_queue_unreadable" {
			require.Contains(t, shown, name, "the dashboard lacks it")
		}
	}
}

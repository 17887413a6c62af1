package n8n

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/source"
)

// workflow is an export of n8n.
type workflow struct {
	ID          string                               `json:"id"`
	Name        string                               `json:"name"`
	Description string                               `json:"description"`
	Nodes       []node                               `json:"nodes"`
	Connections map[string]map[string][][]connection `json:"connections"`
	Settings    map[string]any                       `json:"settings"`
	PinData     map[string]any                       `json:"pinData"`
	Meta        map[string]any                       `json:"meta"`
}

type node struct {
	ID               string                `json:"id"`
	Name             string                `json:"name"`
	Type             string                `json:"type"`
	TypeVersion      float64               `json:"typeVersion"`
	Position         [2]int                `json:"position"`
	Parameters       map[string]any        `json:"parameters"`
	Credentials      map[string]credential `json:"credentials"`
	Notes            string                `json:"notes"`
	OnError          string                `json:"onError"`
	WebhookID        string                `json:"webhookId"`
	RetryOnFail      bool                  `json:"retryOnFail"`
	ContinueOnFail   bool                  `json:"continueOnFail"`
	AlwaysOutputData bool                  `json:"alwaysOutputData"`
}

type credential struct{ ID, Name string }

type connection struct {
	Node  string `json:"node"`
	Index int    `json:"index"`
}

// kind is the type without its package.
func (n node) kind() string { return strings.TrimPrefix(n.Type, "n8n-nodes-base.") }

// at returns a parameter by its path, such as "options.timeout"; nil if it is missing.
func (n node) at(path string) any {
	var value any = n.Parameters
	for _, key := range strings.Split(path, ".") {
		fields, _ := value.(map[string]any)
		value = fields[key]
	}
	return value
}

func (n node) text(path string) string {
	text, _ := n.at(path).(string)
	return text
}

// newest are the allowed types with the newest version that n8n 1.123 and 2.40 both know.
var newest = map[string]float64{
	"postgres": 2.6, "webhook": 2.1, "scheduleTrigger": 1.3, "httpRequest": 4.3, "executeWorkflow": 1.3, "executeWorkflowTrigger": 1.1,
	"splitInBatches": 3, "code": 2, "if": 2.3, "switch": 3.4, "telegram": 1.2, "respondToWebhook": 1.5, "merge": 3.2, "stickyNote": 1,
	"errorTrigger": 1, "manualTrigger": 1, "splitOut": 1, "crypto": 1,
}

var (
	keys = []string{"id", "name", "description", "active", "isArchived", "nodes", "connections", "settings", "staticData", "pinData", "meta", "tags"}
	// secret matches tokens of Telegram, bearer values and keys.
	secret = regexp.MustCompile(`\b\d{6,}:[A-Za-z0-9_-]{30,}|Bearer\s+[A-Za-z0-9._-]{20,}|-----BEGIN |"(password|apiKey|accessToken)"\s*:\s*"[^"{=]+"`)
	// call is the only form of a statement: one bare call that PostgreSQL can hand on to another node of a cluster.
	call      = regexp.MustCompile(`^select [a-z_]+(, [a-z_]+)* from autopost\.[a-z_]+\((\$\d+(::[a-z]+(\[\])?)?(, )?)*\)( as [a-z_]+)?$`)
	parameter = regexp.MustCompile(`\$(\d+)`)
	array     = regexp.MustCompile(`(?s)^=\{\{ \[(.+)\] \}\}$`)
	reference = regexp.MustCompile(`\$\('([^']+)'\)`)
	// absent is what a Code node does not have, and what a workflow must not read.
	absent  = regexp.MustCompile(`\brequire\(|\bimport\(|\$env\b|process\.env|\$getWorkflowStaticData|helpers\.|fetch\(`)
	generic = regexp.MustCompile(`^(HTTP Request|Postgres|Code|Set|Edit Fields|If|IF|Switch|Merge|Webhook|Loop Over Items|Telegram)\d*$`)
	uuid    = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
)

// lint returns the violations of all exports, by file name.
func lint(files map[string][]byte) []string {
	var found []string
	flows := map[string]workflow{}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		var w workflow
		if err := json.Unmarshal(files[file], &w); err != nil {
			found = append(found, fmt.Sprintf("%s: is not an export: %v", file, err))
			continue
		}
		flows[file] = w
		bad := func(format string, args ...any) { found = append(found, file+": "+fmt.Sprintf(format, args...)) }
		lintFile(file, files[file], w, bad)
		lintEdges(w, bad)
		for _, n := range w.Nodes {
			bad := func(format string, args ...any) { bad("%q: %s", n.Name, fmt.Sprintf(format, args...)) }
			lintNode(w, n, bad)
			if rule := nodeRules[n.kind()]; rule != nil {
				rule(n, bad)
			}
		}
	}
	return append(found, lintCalls(flows)...)
}

func lintFile(file string, text []byte, w workflow, bad func(string, ...any)) {
	var compact, indented bytes.Buffer
	if json.Compact(&compact, text) != nil || json.Indent(&indented, compact.Bytes(), "", "  ") != nil || indented.String()+"\n" != string(text) {
		bad("is not indented by two spaces with one final newline")
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(text, &fields) == nil {
		for key := range fields {
			if !slices.Contains(keys, key) {
				bad("has the key %q of one n8n", key)
			}
		}
	}
	errors := slices.ContainsFunc(w.Nodes, func(n node) bool { return n.kind() == "errorTrigger" })
	checks := []struct {
		broken bool
		what   string
	}{
		{w.Name+".json" != file, "the name differs from the file"},
		{w.ID == "" || len(w.ID) > 36, "the id must have 1 to 36 characters"},
		{len(w.Description) < 40, "the description must say what it does and why"},
		{len(w.PinData) > 0, "has pinned data"},
		{w.Meta["instanceId"] != nil, "has the id of an n8n"},
		{secret.Match(text), "has what looks like a secret"},
		{w.Settings["executionOrder"] != "v1", "settings.executionOrder must be v1"},
		{w.Settings["timezone"] != "UTC", "settings.timezone must be UTC"},
		{w.Settings["executionTimeout"] == nil, "settings.executionTimeout is missing"},
		{w.Settings["saveDataSuccessExecution"] != "none", "settings.saveDataSuccessExecution must be none"},
		{w.Settings["errorWorkflow"] == nil && !errors, "settings.errorWorkflow is missing"},
		{!slices.ContainsFunc(w.Nodes, func(n node) bool { return n.kind() == "stickyNote" && len(n.text("content")) > 100 }), "has no sticky note that describes it"},
	}
	for _, c := range checks {
		if c.broken {
			bad("%s", c.what)
		}
	}
}

func lintNode(w workflow, n node, bad func(string, ...any)) {
	limit, known := newest[n.kind()]
	parameters, _ := json.Marshal(n.Parameters) // read from JSON
	switch {
	case !known:
		bad("the type %s is not allowed", n.kind())
	case n.TypeVersion > limit || n.TypeVersion < 1:
		bad("the version %g is newer than %g, which both lines of n8n know", n.TypeVersion, limit)
	}
	if !uuid.MatchString(n.ID) || generic.MatchString(n.Name) {
		bad("needs a stable id and a name that says what it does")
	}
	if n.kind() != "stickyNote" && len(n.Notes) < 40 {
		bad("needs a note: what it decides and what it must not")
	}
	if n.RetryOnFail || n.ContinueOnFail {
		bad("retries belong to SQL, and onError replaces continueOnFail")
	}
	if strings.Contains(string(parameters), "$env") {
		bad("reads the environment of n8n")
	}
	for _, c := range n.Credentials {
		if c.ID == "" || c.Name == "" {
			bad("its credential needs id and name")
		}
	}
	for _, m := range reference.FindAllStringSubmatch(string(parameters), -1) {
		if !slices.ContainsFunc(w.Nodes, func(other node) bool { return other.Name == m[1] }) {
			bad("refers to the unknown node %q", m[1])
		}
	}
}

// nodeRules are the rules of single types.
var nodeRules = map[string]func(n node, bad func(string, ...any)){
	"postgres": lintStatement,
	"httpRequest": func(n node, bad func(string, ...any)) {
		if n.at("options.timeout") == nil || n.OnError != "continueRegularOutput" || n.at("options.redirect.redirect.followRedirects") != false ||
			n.at("options.response.response.neverError") != true || n.at("options.response.response.fullResponse") != true {
			bad("needs a timeout, onError, no redirects, and every status as data")
		}
		if regexp.MustCompile(`(?i)[?&](access_token|token|apikey)=`).MatchString(n.text("url")) {
			bad("has a secret in its address")
		}
	},
	"telegram": func(n node, bad func(string, ...any)) {
		if n.OnError != "continueRegularOutput" {
			bad("a refusal must be data: onError must be continueRegularOutput")
		}
		if n.text("operation") == "sendMessage" && n.at("additionalFields.appendAttribution") != false {
			bad("appends an advertisement: appendAttribution must be false")
		}
	},
	"executeWorkflow": func(n node, bad func(string, ...any)) {
		if n.text("mode") != "once" || n.text("workflowInputs.mappingMode") != "defineBelow" {
			bad("must pass all items at once, with named inputs")
		}
	},
	"executeWorkflowTrigger": func(n node, bad func(string, ...any)) {
		if n.text("inputSource") != "workflowInputs" || len(inputs(n)) == 0 {
			bad("must have typed inputs")
		}
	},
	"switch": func(n node, bad func(string, ...any)) {
		if n.text("options.fallbackOutput") != "extra" {
			bad("needs a fallback output: items without a match would vanish")
		}
	},
	"code": func(n node, bad func(string, ...any)) {
		if absent.MatchString(n.text("jsCode")) || n.at("language") != nil {
			bad("must be JavaScript that uses only what a Code node has")
		}
	},
	"webhook": func(n node, bad func(string, ...any)) {
		if n.WebhookID == "" || n.text("responseMode") != "responseNode" {
			bad("needs a webhookId, and answers by a node")
		}
	},
}

func lintStatement(n node, bad func(string, ...any)) {
	query := n.text("query")
	if n.text("operation") != "executeQuery" || !call.MatchString(query) {
		bad("the statement must be one call, select … from autopost.f($1, …), got %q", query)
		return
	}
	if n.text("options.queryBatching") != "independently" {
		bad("queryBatching must be independently: the default joins all items into one text")
	}
	want := 0
	for _, m := range parameter.FindAllStringSubmatch(query, -1) {
		var place int
		_, _ = fmt.Sscan(m[1], &place) // digits
		want = max(want, place)
	}
	given := n.text("options.queryReplacement")
	if want == 0 && given == "" {
		return
	}
	elements := array.FindStringSubmatch(given)
	if elements == nil {
		bad("queryReplacement must be one expression that yields an array; the text form splits values at commas")
		return
	}
	if got := len(split(elements[1])); got != want {
		bad("passes %d values for %d parameters", got, want)
	}
}

// split returns the elements of an array in JavaScript. It knows brackets and quotes.
func split(text string) []string {
	depth, quote, from := 0, rune(0), 0
	var parts []string
	for i, r := range text {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '\'' || r == '"' || r == '`':
			quote = r
		case strings.ContainsRune("([{", r):
			depth++
		case strings.ContainsRune(")]}", r):
			depth--
		case r == ',' && depth == 0:
			parts, from = append(parts, text[from:i]), i+1
		}
	}
	return append(parts, text[from:])
}

// lintEdges checks the connections and the layout.
func lintEdges(w workflow, bad func(string, ...any)) {
	nodes := map[string]node{}
	for _, n := range w.Nodes {
		if _, twice := nodes[n.Name]; twice {
			bad("two nodes are called %q", n.Name)
		}
		for _, other := range nodes {
			if n.kind() != "stickyNote" && other.kind() != "stickyNote" && abs(n.Position[0]-other.Position[0]) < 160 && abs(n.Position[1]-other.Position[1]) < 90 {
				bad("%q lies on %q", n.Name, other.Name)
			}
		}
		nodes[n.Name] = n
	}
	next := map[string][]string{}
	inputsOf := map[string]int{}
	before := map[string][]string{}
	for from, kinds := range w.Connections {
		if _, ok := nodes[from]; !ok {
			bad("an edge begins at the unknown node %q", from)
		}
		for _, edge := range slices.Concat(kinds["main"]...) {
			if _, ok := nodes[edge.Node]; !ok {
				bad("an edge ends at the unknown node %q", edge.Node)
			}
			next[from] = append(next[from], edge.Node)
			before[edge.Node] = append(before[edge.Node], from)
			inputsOf[edge.Node] = max(inputsOf[edge.Node], edge.Index+1)
		}
	}
	for _, n := range w.Nodes {
		starts := strings.HasSuffix(n.kind(), "Trigger") || n.kind() == "webhook" || n.kind() == "stickyNote"
		if !starts && len(before[n.Name]) == 0 {
			bad("%q is not connected", n.Name)
		}
		switch n.kind() {
		case "merge":
			if number, _ := n.at("numberInputs").(float64); int(number) != inputsOf[n.Name] {
				bad("%q has %d inputs connected, and numberInputs %g", n.Name, inputsOf[n.Name], number)
			}
		case "splitInBatches":
			lintLoop(nodes, next, before, n, bad)
		}
	}
}

// lintLoop checks a loop: an empty answer in it would end it silently.
func lintLoop(nodes map[string]node, next, before map[string][]string, loop node, bad func(string, ...any)) {
	inside := reach(next, loop.Name)
	for name := range inside {
		n := nodes[name]
		if n.kind() == "splitInBatches" && name != loop.Name {
			bad("the loops %q and %q are nested", loop.Name, name)
		}
		// A call "as x" returns one value; a call of columns returns any number of rows.
		if n.kind() == "postgres" && reach(next, name)[loop.Name] && !n.AlwaysOutputData && !strings.Contains(n.text("query"), ") as ") {
			bad("%q may answer nothing, which ends the loop %q: set alwaysOutputData", name, loop.Name)
		}
	}
	for _, from := range before[loop.Name] {
		if inside[from] && nodes[from].kind() != "postgres" && nodes[from].kind() != "if" {
			bad("%q leads back into the loop %q: only its commit and its test for work may", from, loop.Name)
		}
	}
}

func reach(next map[string][]string, from string) map[string]bool {
	seen := map[string]bool{}
	var visit func(string)
	visit = func(name string) {
		for _, to := range next[name] {
			if !seen[to] {
				seen[to] = true
				visit(to)
			}
		}
	}
	visit(from)
	return seen
}

// inputs returns the names of the typed inputs of a sub-workflow.
func inputs(trigger node) []string {
	var names []string
	values, _ := trigger.at("workflowInputs.values").([]any)
	for _, v := range values {
		if fields, ok := v.(map[string]any); ok {
			name, _ := fields["name"].(string)
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// lintCalls checks the calls between workflows.
func lintCalls(flows map[string]workflow) []string {
	var found []string
	byID := map[string]workflow{}
	for _, file := range slices.Sorted(maps.Keys(flows)) {
		w := flows[file]
		if other, twice := byID[w.ID]; twice {
			found = append(found, fmt.Sprintf("%s: has the id of %s", file, other.Name))
		}
		byID[w.ID] = w
	}
	for _, file := range slices.Sorted(maps.Keys(flows)) {
		w := flows[file]
		if id, ok := w.Settings["errorWorkflow"].(string); ok && byID[id].Name == "" {
			found = append(found, fmt.Sprintf("%s: errorWorkflow %q is in no file", file, id))
		}
		for _, n := range w.Nodes {
			if n.kind() != "executeWorkflow" {
				continue
			}
			target, ok := byID[n.text("workflowId.value")]
			at := slices.IndexFunc(target.Nodes, func(n node) bool { return n.kind() == "executeWorkflowTrigger" })
			if !ok || at < 0 {
				found = append(found, fmt.Sprintf("%s: %q calls %q, which is in no file", file, n.Name, n.text("workflowId.value")))
				continue
			}
			passed, _ := n.at("workflowInputs.value").(map[string]any)
			if names := slices.Sorted(maps.Keys(passed)); !slices.Equal(names, inputs(target.Nodes[at])) {
				found = append(found, fmt.Sprintf("%s: %q passes %v to %s, which takes %v", file, n.Name, names, target.Name, inputs(target.Nodes[at])))
			}
		}
	}
	return found
}

func abs(n int) int { return max(n, -n) }

// exports reads the folder workflows.
func exports(t testing.TB) map[string][]byte {
	t.Helper()
	root, err := source.Root()
	require.NoError(t, err)
	paths, err := filepath.Glob(filepath.Join(root, "workflows", "*.json"))
	require.NoError(t, err)
	files := map[string][]byte{}
	for _, path := range paths {
		files[filepath.Base(path)], err = os.ReadFile(path)
		require.NoError(t, err)
	}
	return files
}

func parse(t testing.TB, text []byte) workflow {
	t.Helper()
	var w workflow
	require.NoError(t, json.Unmarshal(text, &w))
	return w
}

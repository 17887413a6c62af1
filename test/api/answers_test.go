package api

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
)

// elsewhere are the reads that other tests judge: test/e2e follows a stream, test/pages reads the daemons with a session,
// and a picture is not JSON.
var elsewhere = []string{"open-stream", "list-daemons", "get-picture"}

// Every answer matches the OpenAPI document: reads of rows in every status, and writes.
func TestAnswersMatchTheDocument(t *testing.T) {
	t.Parallel()
	w := open(t)
	schemas := compiler(t, w.document)
	judge := func(o operation, c call) reply {
		t.Helper()
		c.key = w.keys["owner"]
		r := w.ask(c)
		require.Equal(t, o.success(), itoa(r.status), "%s: %s", o.ID, r.raw)
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(r.raw))
		require.NoError(t, err)
		at := strings.NewReplacer("~", "~0", "/", "~1").Replace(o.Path)
		schema, err := schemas.Compile("doc.json#/paths/" + at + "/" + strings.ToLower(o.Method) + "/responses/" + o.success() + "/content/application~1json/schema")
		require.NoError(t, err, o.ID)
		require.NoError(t, schema.Validate(value), "%s: %s", o.ID, r.raw)
		return r
	}
	for _, o := range w.operations {
		if o.Method == http.MethodGet && !slices.Contains(elsewhere, o.ID) {
			r := judge(o, w.request(o, "acme"))
			if items, list := r.body["items"].([]any); list {
				require.NotEmpty(t, items, "%s shows nothing to be judged", o.ID)
			}
		}
	}
	for name, id := range w.ids["acme"] {
		if strings.HasPrefix(name, "delivery_id ") {
			for _, o := range w.operations {
				if o.ID == "get-delivery" || o.ID == "preview-delivery" {
					judge(o, call{method: o.Method, path: strings.ReplaceAll(o.Path, "{delivery_id}", id)})
				}
			}
		}
	}
	for _, o := range w.operations {
		if o.Method != http.MethodGet && o.ID != "put-setting" && !slices.Contains(personal, o.ID) { // people alone change settings: see test/pages
			judge(o, w.request(o, "acme"))
		}
	}
}

func compiler(t *testing.T, document []byte) *jsonschema.Compiler {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	require.NoError(t, c.AddResource("doc.json", value))
	return c
}

package api

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the page and its style
	"encoding/base64"
	"encoding/json"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"autopost/internal/api/rest"
	"autopost/internal/problem"
)

//go:embed docs.html
var docsPage string

//go:embed docs.css
var docsStyle string

// resource is a section of the page: the operations of one path.
type resource struct {
	Name       string
	Operations []operation
}

// operation is an operation with the texts of the page.
type operation struct {
	*huma.Operation

	Need     rest.Need
	Prose    string
	Body     string
	Fields   []Field
	Columns  []Field
	Answers  []failure
	Success  string
	Answered string
}

type failure struct {
	Status string
	problem.Kind
}

// docs serves a page that loads nothing from other hosts. The first request renders it.
func docs(api huma.API) http.Handler {
	rendered := sync.OnceValues(func() ([]byte, error) { return renderDocs(api.OpenAPI()) })
	sum := sha256.Sum256([]byte(docsStyle))
	policy := "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		page, err := rendered()
		if err != nil {
			problem.Write(w, problem.Defect.Says("The page could not be rendered."))
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", policy)
		// The caller may be gone. There is no other way to report that.
		_, _ = w.Write(page)
	})
}

func renderDocs(document *huma.OpenAPI) ([]byte, error) {
	page, err := template.New("docs").Parse(docsPage)
	if err != nil {
		return nil, err
	}
	var resources []resource
	for _, one := range Operations(document) {
		shown, err := show(document.Components.Schemas, one)
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(resources, func(r resource) bool { return r.Name == one.Tags[0] })
		if at < 0 {
			at = len(resources)
			resources = append(resources, resource{Name: one.Tags[0]})
		}
		resources[at].Operations = append(resources[at].Operations, shown)
	}
	var out bytes.Buffer
	err = page.Execute(&out, map[string]any{"Style": template.CSS(docsStyle), "Info": document.Info, "Resources": resources, "Kinds": problem.Catalogue()}) //nolint:gosec // our own file
	return out.Bytes(), err
}

func show(schemas huma.Registry, one *huma.Operation) (operation, error) {
	shown := operation{Operation: one}
	shown.Need, _ = rest.Access(one.OperationID)
	shown.Prose, _, _ = strings.Cut(one.Description, "\n")
	if one.RequestBody != nil {
		if media := one.RequestBody.Content["application/json"]; media != nil && media.Example != nil {
			text, err := json.MarshalIndent(media.Example, "", "  ")
			if err != nil {
				return shown, err
			}
			shown.Body, shown.Fields = string(text), fieldsOf(schemas, media.Schema, "", nil)
		}
	}
	for status, response := range one.Responses {
		code, _ := strconv.Atoi(status)
		if kinds := problem.OfAPI(code); len(kinds) > 0 {
			for _, k := range kinds {
				shown.Answers = append(shown.Answers, failure{Status: status, Kind: k})
			}
			continue
		}
		media := response.Content["application/json"]
		if media == nil { // server-sent events, or a medium
			shown.Success, shown.Answered = status, "The bytes of the medium."
			if events := response.Content["text/event-stream"]; events != nil {
				shown.Answered = events.Example.(string)
			}
			continue
		}
		shown.Columns = fieldsOf(schemas, media.Schema, "", nil)
		text, err := json.MarshalIndent(media.Example, "", "  ")
		if err != nil {
			return shown, err
		}
		shown.Success, shown.Answered = status, string(text)
	}
	slices.SortStableFunc(shown.Answers, func(a, b failure) int { return strings.Compare(a.Status, b.Status) })
	return shown, nil
}

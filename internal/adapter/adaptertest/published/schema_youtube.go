package published

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// youtubeAPI is Google's published discovery document of the YouTube Data API.
type youtubeAPI struct {
	document
	Parameters map[string]schema          `json:"parameters"`
	Schemas    map[string]schema          `json:"schemas"`
	Resources  map[string]youtubeResource `json:"resources"`
}

type youtubeResource struct {
	Methods   map[string]youtubeMethod   `json:"methods"`
	Resources map[string]youtubeResource `json:"resources"`
}

type youtubeMethod struct {
	ID          string                      `json:"id"`
	HTTPMethod  string                      `json:"httpMethod"`
	Path        string                      `json:"path"`
	Parameters  map[string]youtubeParameter `json:"parameters"`
	Request     *schema                     `json:"request"`
	MediaUpload *struct {
		Accept    []string `json:"accept"`
		Protocols map[string]struct {
			Path string `json:"path"`
		} `json:"protocols"`
	} `json:"mediaUpload"`
}

type youtubeParameter struct {
	schema
	Repeated bool `json:"repeated"`
	Required bool `json:"required"`
}

// UnmarshalJSON implements json.Unmarshaler: required is a boolean here, and a list in a schema.
func (p *youtubeParameter) UnmarshalJSON(raw []byte) error {
	var flags struct {
		Repeated bool `json:"repeated"`
		Required bool `json:"required"`
	}
	if err := json.Unmarshal(raw, &flags); err != nil {
		return err
	}
	p.Repeated, p.Required = flags.Repeated, flags.Required
	return json.Unmarshal(raw, &p.schema)
}

// YouTube checks requests to the YouTube Data API, those for tokens aside, against Google's published
// discovery document.
func YouTube(t testing.TB) Schema {
	api, ok := description[youtubeAPI](t, "youtube-data-api.discovery.json")
	if !ok {
		return func(*http.Request, []byte) error { return nil }
	}
	api.schemas = api.Schemas
	return func(r *http.Request, body []byte) error {
		if r.URL.Path == "/google/token" || r.URL.Path == "/token" {
			return checkNoSecret(r.URL.Query())
		}
		if err := api.checkRequest(r, body); err != nil {
			return fmt.Errorf("%s %s: %w", r.Method, r.URL.Path, err)
		}
		return nil
	}
}

func (api youtubeAPI) checkRequest(r *http.Request, body []byte) error {
	query := r.URL.Query()
	inSession := query.Has("upload_id")
	method, upload, ok := api.method(r, inSession)
	if !ok {
		return fmt.Errorf("there is no such method")
	}
	if err := api.checkParameters(method, query, upload); err != nil {
		return err
	}
	switch {
	case inSession:
		return method.checkContentType(r.Header.Get("Content-Type"), len(body))
	case method.ID == "youtube.videos.insert":
		if err := method.checkContentType(r.Header.Get("X-Upload-Content-Type"), 1); err != nil {
			return err
		}
		return api.checkResource(method, r.Header.Get("Content-Type"), query, body)
	case upload && method.Request == nil:
		return method.checkContentType(r.Header.Get("Content-Type"), len(body))
	case upload:
		return api.checkRelated(method, r, body)
	case method.Request == nil:
		if len(body) > 0 {
			return fmt.Errorf("there is no body, %d bytes were sent", len(body))
		}
		return nil
	}
	return api.checkResource(method, r.Header.Get("Content-Type"), query, body)
}

// method returns the method of a request; upload reports whether its path is a media upload. The bytes of a
// session are sent by PUT for every method.
func (api youtubeAPI) method(r *http.Request, inSession bool) (found youtubeMethod, upload, ok bool) {
	for _, resource := range api.Resources {
		for _, m := range resource.Methods {
			if "/"+m.Path == r.URL.Path && m.HTTPMethod == r.Method {
				return m, false, true
			}
			if m.MediaUpload == nil {
				continue
			}
			for _, protocol := range m.MediaUpload.Protocols {
				if protocol.Path == r.URL.Path && (m.HTTPMethod == r.Method || inSession && r.Method == http.MethodPut) {
					return m, true, true
				}
			}
		}
	}
	return youtubeMethod{}, false, false
}

func (api youtubeAPI) checkParameters(m youtubeMethod, query url.Values, upload bool) error {
	if err := checkNoSecret(query); err != nil {
		return err
	}
	for name, p := range m.Parameters {
		if p.Required && !query.Has(name) {
			return fmt.Errorf("%s is missing", name)
		}
		if len(query[name]) > 1 && !p.Repeated {
			return fmt.Errorf("%s is given %d times", name, len(query[name]))
		}
	}
	if upload && !query.Has("uploadType") {
		return fmt.Errorf("uploadType is missing")
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		p, known := m.Parameters[name]
		if !known {
			p.schema, known = api.Parameters[name]
		}
		if !known && (!upload || name != "upload_id") {
			return fmt.Errorf("the parameter %s is unknown", name)
		}
		for _, given := range query[name] {
			values := []string{given}
			if p.Repeated {
				values = strings.Split(given, ",")
			}
			for _, value := range values {
				if err := api.checkQuery(p.schema, name, value); known && err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// checkContentType compares a content type with those that an upload accepts.
func (m youtubeMethod) checkContentType(given string, size int) error {
	if size == 0 && given == "" {
		return nil
	}
	kind, _, err := mime.ParseMediaType(given)
	if err != nil {
		return fmt.Errorf("content type %q: %w", given, err)
	}
	class, _, _ := strings.Cut(kind, "/")
	for _, accepted := range m.MediaUpload.Accept {
		if accepted == kind || accepted == class+"/*" || accepted == "*/*" {
			return nil
		}
	}
	return fmt.Errorf("content type %s is not one of %v", kind, m.MediaUpload.Accept)
}

// checkResource checks a body of JSON. Each of its parts must be named by the parameter part.
func (api youtubeAPI) checkResource(m youtubeMethod, contentType string, query url.Values, body []byte) error {
	if kind, _, err := mime.ParseMediaType(contentType); err != nil || kind != "application/json" {
		return fmt.Errorf("content type %q is not application/json", contentType)
	}
	var object map[string]any
	if err := json.Unmarshal(body, &object); err != nil {
		return err
	}
	parts := strings.Split(strings.Join(query["part"], ","), ",")
	for name := range object {
		if name != "id" && name != "kind" && name != "etag" && !slices.Contains(parts, name) {
			return fmt.Errorf("the part %s is not named in part=%s", name, strings.Join(parts, ","))
		}
	}
	of := api.document
	of.method = m.ID
	return of.check(*m.Request, "body", object)
}

// checkRelated checks a body of two parts: the resource and the content.
func (api youtubeAPI) checkRelated(m youtubeMethod, r *http.Request, body []byte) error {
	kind, options, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/related" {
		return fmt.Errorf("content type %q is not multipart/related", r.Header.Get("Content-Type"))
	}
	parts := multipart.NewReader(bytes.NewReader(body), options["boundary"])
	resource, err := parts.NextPart()
	if err != nil {
		return err
	}
	described, err := io.ReadAll(resource)
	if err != nil {
		return err
	}
	if err := api.checkResource(m, resource.Header.Get("Content-Type"), r.URL.Query(), described); err != nil {
		return err
	}
	content, err := parts.NextPart()
	if err != nil {
		return err
	}
	if err := m.checkContentType(content.Header.Get("Content-Type"), 1); err != nil {
		return err
	}
	if _, err := parts.NextPart(); err != io.EOF {
		return fmt.Errorf("there is a third part")
	}
	return nil
}

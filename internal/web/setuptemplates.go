package web

import (
	"cmp"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"autopost/internal/configfile"
)

// templateVersion is a version of a template.
type templateVersion struct {
	TemplateID string            `json:"template_id"`
	Platform   string            `json:"platform"`
	Version    int               `json:"version"`
	Body       string            `json:"body"`
	Defaults   map[string]string `json:"defaults"`
	Vars       []string          `json:"vars"`
	Sanitize   []string          `json:"sanitize"`
	ParseMode  string            `json:"parse_mode"`
	MaxLength  *int              `json:"max_length"`
	Enabled    bool              `json:"enabled"`
}

// templatePreview is a sample post in a template.
type templatePreview struct {
	Status    string `json:"status"`
	Text      string `json:"text"`
	Truncated bool   `json:"truncated"`
	Length    int    `json:"length"`
	Limit     int    `json:"limit"`
	Errors    []struct{ Field, Reason, Remedy string }
}

// templateData is the content of the pages of templates.
type templateData struct {
	ID       string
	Platform string
	Versions []templateVersion
	Next     string
	Form     *form
	Sample   string
	Preview  *templatePreview
}

var templateKind = configfile.KindOf("template")

// everyPlatform is the platform of a template without one.
const everyPlatform = "*"

func (s *server) templates(v *view) {
	if v.r.URL.Query().Has("add") && v.may("editor") {
		d := templateData{Platform: everyPlatform, Form: v.templateForm("", nil), Sample: "title: " + v.t("templates.sample")}
		d.Form.Fields[0].Value = "{title}\n\n{link?}"
		v.preview(&d)
		v.render(http.StatusOK, templatePage(v, d))
		return
	}
	var got page[templateVersion]
	target := url.Values{"limit": {"200"}}
	if cursor := v.r.URL.Query().Get("cursor"); cursor != "" {
		target.Set("cursor", cursor)
	}
	if err := v.get("/templates?"+target.Encode(), &got); err != nil {
		v.fail(err)
		return
	}
	d := templateData{Next: text(got.NextCursor)}
	for _, t := range got.Items { // the newest version comes first
		if n := len(d.Versions); n == 0 || d.Versions[n-1].TemplateID != t.TemplateID || d.Versions[n-1].Platform != t.Platform {
			d.Versions = append(d.Versions, t)
		}
	}
	v.render(http.StatusOK, templatesPage(v, d))
}

// templateForm is the form of the next version of a template.
func (v *view) templateForm(id string, newest *templateVersion) *form {
	r := row{}
	if newest != nil {
		defaults, list := map[string]any{}, func(texts []string) (all []any) {
			for _, text := range texts {
				all = append(all, text)
			}
			return all
		}
		for name, value := range newest.Defaults {
			defaults[name] = value
		}
		r = row{"body": newest.Body, "defaults": defaults, "vars": list(newest.Vars), "sanitize": list(newest.Sanitize), "parse_mode": newest.ParseMode}
		if newest.MaxLength != nil {
			r["max_length"] = float64(*newest.MaxLength)
		}
	}
	f := &form{Action: "/setup/templates", NewID: id == "", ID: id, Fields: v.fieldsOf(templateKind, nil, r), IDHint: v.t("hint.templates.id"), Button: v.t("templates.save")}
	if id != "" {
		f.Action = "/setup/templates/" + pathOf(id) + "/set"
	}
	return f
}

// readTemplate reads the versions of a template on a platform.
func (v *view) readTemplate(id, platform string) (templateData, error) {
	d := templateData{ID: id, Platform: cmp.Or(platform, everyPlatform)}
	var got page[templateVersion]
	if err := v.get("/templates/"+pathOf(id)+"?limit=100", &got); err != nil {
		return d, err
	}
	if platform == "" && len(got.Items) > 0 {
		d.Platform = got.Items[0].Platform
	}
	var newest *templateVersion
	d.Versions = slices.DeleteFunc(got.Items, func(t templateVersion) bool { return t.Platform != d.Platform })
	if len(d.Versions) > 0 {
		newest = &d.Versions[0]
	}
	d.Form = v.templateForm(id, newest)
	d.Sample = v.sampleOf(d.Form.Fields[0].Value)
	return d, nil
}

func (s *server) template(v *view) {
	d, err := v.readTemplate(v.r.PathValue("id"), v.r.URL.Query().Get("platform"))
	if err != nil {
		v.fail(err)
		return
	}
	v.preview(&d)
	v.render(http.StatusOK, templatePage(v, d))
}

var placeholder = regexp.MustCompile(`\{([a-z_][a-z0-9_]*)\??\}`)

// sampleOf returns a line for each placeholder of a template.
func (v *view) sampleOf(body string) string {
	var lines []string
	for _, m := range placeholder.FindAllStringSubmatch(body, -1) {
		line := m[1] + ": " + v.t("templates.sample")
		if m[1] == "link" {
			line = "link: https://example.org/1"
		}
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// sampleValues reads the lines of a sample.
func sampleValues(sample string) map[string]string {
	values := map[string]string{}
	for line := range strings.Lines(sample) {
		if name, value, ok := strings.Cut(line, ":"); ok {
			values[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	}
	return values
}

// written returns the template of the form. ok is false if a value cannot be read.
func (d templateData) written(v *view) (template map[string]any, ok bool) {
	template, ok = map[string]any{}, true
	for _, f := range d.Form.Fields {
		value, err := valueOf(f)
		switch {
		case err != nil:
			f.Fault, f.Detail, ok = v.t("fault.form"), err.Error(), false
		case value != nil:
			template[f.Name] = value
		}
	}
	if template["body"] == nil {
		d.Form.Fields[0].Fault, ok = v.t("fault.missing"), false
	}
	return template, ok
}

// preview renders the sample in the template of the form.
func (v *view) preview(d *templateData) {
	template, ok := d.written(v)
	if !ok {
		return
	}
	id := cmp.Or(d.ID, "new")
	vars := sampleValues(d.Sample)
	post := map[string]any{"template": map[string]any{"name": id, "vars": vars}}
	for _, name := range []string{"text", "link"} {
		if value, given := vars[name]; given {
			post[name] = value
			delete(vars, name)
		}
	}
	platform := d.Platform
	if platform == everyPlatform {
		platform = "telegram"
	}
	var shown templatePreview
	if err := v.call(http.MethodPost, "/templates/"+pathOf(id)+"/preview", map[string]any{"platform": platform, "template": template, "post": post}, &shown); err != nil {
		shown = templatePreview{Status: "invalid", Errors: []struct{ Field, Reason, Remedy string }{{Reason: cmp.Or(v.fault(err), v.t("error.unavailable"))}}}
	}
	d.Preview = &shown
}

// putTemplate stores a new template.
func (s *server) putTemplate(v *view) {
	d := templateData{ID: strings.TrimSpace(v.form.Get("id")), Form: v.templateForm("", nil)}
	v.storeTemplate(d)
}

// actOnTemplate stores the next version, shows a preview, or enables or disables a version.
func (s *server) actOnTemplate(v *view) {
	act, id := v.r.PathValue("act"), v.r.PathValue("id")
	switch act {
	case "preview":
		d := templateData{ID: id, Form: v.templateForm(id, nil)}
		v.storeTemplate(d)
	case "set":
		d, err := v.readTemplate(id, v.form.Get("platform"))
		if err != nil {
			v.fail(err)
			return
		}
		v.storeTemplate(d)
	case "enable", "disable":
		version, err := strconv.Atoi(v.form.Get("version"))
		if err == nil {
			err = v.post("/templates/"+pathOf(id)+"/enable", map[string]any{"platform": v.form.Get("platform"), "version": version, "enabled": act == "enable", "reason": v.t("reason.setup")})
		}
		if err != nil {
			v.fail(err)
			return
		}
		v.done("/setup/templates/"+pathOf(id)+"?platform="+url.QueryEscape(v.form.Get("platform")), "act_"+act)
	default:
		v.fail(errNotFound)
	}
}

// storeTemplate stores the form as the next version, or shows a preview of it.
func (v *view) storeTemplate(d templateData) {
	d.Platform, d.Sample = cmp.Or(v.form.Get("platform"), everyPlatform), strings.ReplaceAll(v.form.Get("sample"), "\r\n", "\n")
	d.Form.read(v.form)
	template, ok := d.written(v)
	if d.ID == "" && v.r.PathValue("act") != "preview" && !v.form.Has("preview") {
		d.Form.IDFault, ok = v.t("fault.missing"), false
	}
	if v.r.PathValue("act") == "preview" || v.form.Has("preview") || !ok {
		v.preview(&d)
		if v.r.Header.Get("HX-Target") == "preview" {
			v.render(http.StatusOK, previewPanel(v, d))
			return
		}
		status := http.StatusOK
		if !ok {
			status = http.StatusUnprocessableEntity
		}
		v.render(status, templatePage(v, d))
		return
	}
	body := map[string]any{"template": template, "platform": d.Platform, "reason": cmp.Or(d.Form.Reason, v.t("reason.setup"))}
	if err := v.call(http.MethodPut, "/templates/"+pathOf(d.ID), body, nil); err != nil {
		status, shown := d.Form.refuse(v, err)
		if !shown {
			v.fail(err)
			return
		}
		v.preview(&d)
		v.render(status, templatePage(v, d))
		return
	}
	v.done("/setup/templates/"+pathOf(d.ID)+"?platform="+url.QueryEscape(d.Platform), "saved")
}

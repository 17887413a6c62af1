package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"autopost/internal/api/rest"
	"autopost/internal/problem"
)

type templateRow struct {
	TemplateID string            `json:"template_id" example:"digest"`
	Platform   string            `json:"platform" example:"*" doc:"* means all platforms."`
	Version    int               `json:"version" example:"3"`
	Body       string            `json:"body" example:"{title}\n{summary?}"`
	Defaults   map[string]string `json:"defaults"`
	Vars       []string          `json:"vars" doc:"The allowed variables; null means those of the body and the defaults."`
	Sanitize   []string          `json:"sanitize" nullable:"false"`
	ParseMode  string            `json:"parse_mode" enum:"HTML,Markdown,None" example:"None"`
	MaxLength  *int              `json:"max_length" nullable:"true"`
	Enabled    bool              `json:"enabled"`
	CreatedAt  instant           `json:"created_at" nullable:"true"`
}

// writtenTemplate is a template in a request.
type writtenTemplate struct {
	Body      string            `json:"body" example:"{title}\n{summary?}" doc:"{var} is a variable, {var?} an optional one. {text} and {link} come from the post. {{ and }} are braces."`
	Defaults  map[string]string `json:"defaults,omitempty"`
	Vars      []string          `json:"vars,omitempty" nullable:"false"`
	Sanitize  []string          `json:"sanitize,omitempty" nullable:"false"`
	ParseMode string            `json:"parse_mode,omitempty" enum:"HTML,Markdown,None"`
	MaxLength int               `json:"max_length,omitempty" minimum:"1"`
}

type templatePut struct {
	Applied    bool     `json:"applied" doc:"false with the reason unchanged if the newest version is equal."`
	Reason     string   `json:"reason,omitempty" example:"unchanged"`
	TemplateID string   `json:"template_id,omitempty" example:"digest"`
	Platform   string   `json:"platform,omitempty" example:"*"`
	Version    int      `json:"version,omitempty" example:"3"`
	_          struct{} `additionalProperties:"true"`
}

type templatePreview struct {
	Status          string          `json:"status" enum:"ok,invalid" example:"ok"`
	Text            string          `json:"text,omitempty" example:"Hello"`
	Truncated       bool            `json:"truncated,omitempty"`
	Length          int             `json:"length,omitempty" doc:"In the unit of the platform."`
	Limit           int             `json:"limit,omitempty"`
	TemplateVersion string          `json:"template_version,omitempty"`
	Meta            map[string]any  `json:"meta,omitempty"`
	Errors          []problem.Fault `json:"errors,omitempty" nullable:"false"`
}

type templatesInput struct {
	rest.Page
	Platform string `query:"platform" doc:"Only this platform; * selects the templates of all platforms."`
}

type putTemplateInput struct {
	rest.AuditedWrite
	IDPath
	Body struct {
		Platform string          `json:"platform,omitempty" example:"telegram" doc:"All platforms by default."`
		Template writtenTemplate `json:"template"`
		rest.Reasoned
	}
}

type enableTemplateInput struct {
	rest.AuditedWrite
	IDPath
	Body struct {
		Platform string `json:"platform,omitempty" example:"telegram" doc:"The template of all platforms by default."`
		Version  int    `json:"version" minimum:"1" example:"3"`
		Enabled  bool   `json:"enabled"`
		rest.Reasoned
	}
}

type previewTemplateInput struct {
	IDPath
	Body struct {
		Platform string           `json:"platform" example:"telegram"`
		Template *writtenTemplate `json:"template,omitempty" doc:"A template to try; by default the newest enabled version."`
		Post     map[string]any   `json:"post" doc:"A raw payload with the sample in template.vars."`
	}
}

var templates = rest.List{Function: "list_templates", Nested: "after", Key: []rest.Column{
	{Name: "template_id", Filter: "template_id", Valid: rest.ValidText},
	{Name: "platform", Filter: "platform", Valid: rest.ValidText},
	{Name: "version", Filter: "version", Valid: rest.ValidNumber},
}}

func registerTemplates(d *server) {
	rest.Register(d.Server, rest.Operation{
		ID: "list-templates", Method: http.MethodGet, Path: "/templates", Summary: "List templates by name", Answer: rest.Listed[templateRow]{},
		Description: "Every version by name and platform, newest first.",
	}, func(ctx context.Context, in *templatesInput) (rest.Reply, error) {
		return d.Read(ctx, templates, in.Page, map[string]any{"platform": in.Platform})
	})
	rest.Register(d.Server, rest.Operation{
		ID: "get-template", Method: http.MethodGet, Path: "/templates/{id}", Summary: "List the versions of a template", Answer: rest.Listed[templateRow]{},
		Description: "By platform, newest first.",
	}, func(ctx context.Context, in *struct {
		rest.Page
		IDPath
	}) (rest.Reply, error) {
		if _, err := d.One(ctx, "This workspace has no such template.", rest.Query{Function: templates.Function, Filter: map[string]any{"template_id": in.ID}}); err != nil {
			return rest.Reply{}, err
		}
		return d.Read(ctx, templates, in.Page, map[string]any{"template_id": in.ID})
	})
	rest.Register(d.Server, rest.Operation{
		ID: "put-template", Method: http.MethodPut, Path: "/templates/{id}", Summary: "Add a version of a template", Answer: templatePut{},
		Example:     map[string]any{"platform": "telegram", "template": map[string]any{"body": "{title}"}, "reason": "a new look"},
		Description: "Adds the next version. Posts that are enqueued later use it. A version never changes.",
	}, func(ctx context.Context, in *putTemplateInput) (rest.Reply, error) {
		return d.Do(ctx, in.AuditedWrite, rest.Change{Reason: in.Body.Reason}, func(ctx context.Context, a rest.OperatorAction) (rest.Written, error) {
			return d.db.PutTemplate(ctx, a, TemplateKey{in.ID, in.Body.Platform}, in.Body.Template)
		})
	})
	rest.Register(d.Server, rest.Operation{
		ID: "enable-template", Method: http.MethodPost, Path: "/templates/{id}/enable", Summary: "Enable or disable a version of a template", Answer: templatePut{},
		Example:     map[string]any{"platform": "telegram", "version": 3, "enabled": false, "reason": "a wrong link"},
		Description: "Posts use the newest enabled version. Rendered texts stay.",
	}, func(ctx context.Context, in *enableTemplateInput) (rest.Reply, error) {
		return d.Do(ctx, in.AuditedWrite, rest.Change{Reason: in.Body.Reason, Subject: fmt.Sprintf("%s/%d", in.ID, in.Body.Version)}, func(ctx context.Context, a rest.OperatorAction) (rest.Written, error) {
			return d.db.EnableTemplate(ctx, a, TemplateKey{in.ID, in.Body.Platform}, in.Body.Version, in.Body.Enabled)
		})
	})
	rest.Register(d.Server, rest.Operation{
		ID: "preview-template", Method: http.MethodPost, Path: "/templates/{id}/preview", Summary: "Preview a template", Answer: templatePreview{},
		Example:     map[string]any{"platform": "telegram", "template": map[string]any{"body": "{title}"}, "post": map[string]any{"template": map[string]any{"name": "digest", "vars": map[string]any{"title": "Hello"}}}},
		Description: "Renders a sample post in a stored or a given template. Writes nothing.",
	}, func(ctx context.Context, in *previewTemplateInput) (rest.Reply, error) {
		var template any
		if in.Body.Template != nil {
			template = in.Body.Template
		}
		post, err := json.Marshal(in.Body.Post)
		if err != nil {
			return rest.Reply{}, err
		}
		return d.Get(ctx, "The preview does not exist.", func(ctx context.Context, workspace string) (json.RawMessage, error) {
			return d.db.PreviewTemplate(ctx, workspace, TemplateKey{in.ID, in.Body.Platform}, template, post)
		})
	})
}

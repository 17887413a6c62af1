package setup

import (
	"context"
	"net/http"

	"autopost/internal/admin/door"
)

type templateRow struct {
	TemplateID string            `json:"template_id" example:"digest"`
	Platform   string            `json:"platform" example:"*" doc:"* for all."`
	Version    int               `json:"version" example:"3" doc:"0 is a built-in one."`
	Body       string            `json:"body" example:"{title}\n{summary?}"`
	Defaults   map[string]string `json:"defaults"`
	Vars       []string          `json:"vars" doc:"What the body and a post may name; null: what the body and the defaults name."`
	Sanitize   []string          `json:"sanitize" nullable:"false"`
	ParseMode  string            `json:"parse_mode" enum:"HTML,Markdown,None" example:"None"`
	MaxLength  *int              `json:"max_length" nullable:"true"`
	Enabled    bool              `json:"enabled"`
	CreatedAt  instant           `json:"created_at" nullable:"true"`
}

// written is a template that is being written.
type writtenTemplate struct {
	Body      string            `json:"body" example:"{title}\n{summary?}" doc:"{var}, or {var?} for one that may be missing; {text} and {link} are the post's own; {{ and }} are braces."`
	Defaults  map[string]string `json:"defaults,omitempty"`
	Vars      []string          `json:"vars,omitempty" nullable:"false"`
	Sanitize  []string          `json:"sanitize,omitempty" nullable:"false"`
	ParseMode string            `json:"parse_mode,omitempty" enum:"HTML,Markdown,None"`
	MaxLength int               `json:"max_length,omitempty" minimum:"1"`
}

type templatePut struct {
	Applied    bool     `json:"applied" doc:"false with the reason unchanged where the newest version is the same."`
	Reason     string   `json:"reason,omitempty" example:"unchanged"`
	TemplateID string   `json:"template_id,omitempty" example:"digest"`
	Platform   string   `json:"platform,omitempty" example:"*"`
	Version    int      `json:"version,omitempty" example:"3"`
	_          struct{} `additionalProperties:"true"`
}

type templatePreview struct {
	Status          string         `json:"status" enum:"ok,invalid" example:"ok"`
	Text            string         `json:"text,omitempty" example:"Hello"`
	Truncated       bool           `json:"truncated,omitempty"`
	Length          int            `json:"length,omitempty" doc:"In the platform's own unit."`
	Limit           int            `json:"limit,omitempty"`
	TemplateVersion string         `json:"template_version,omitempty"`
	Meta            map[string]any `json:"meta,omitempty"`
	Errors          []door.Fault   `json:"errors,omitempty" nullable:"false"`
}

type templatesInput struct {
	door.Page
	Platform string `query:"platform" doc:"Of this platform, or * for those of all."`
}

type putTemplateInput struct {
	door.Act
	IDPath
	Body struct {
		Platform string          `json:"platform,omitempty" example:"telegram" doc:"Without it, for all."`
		Template writtenTemplate `json:"template"`
		door.Reasoned
	}
}

type enableTemplateInput struct {
	door.Act
	IDPath
	Body struct {
		Platform string `json:"platform,omitempty" example:"telegram" doc:"Without it, the one for all."`
		Version  int    `json:"version" minimum:"1" example:"3"`
		Enabled  bool   `json:"enabled"`
		door.Reasoned
	}
}

type previewTemplateInput struct {
	IDPath
	Body struct {
		Platform string           `json:"platform" example:"telegram"`
		Template *writtenTemplate `json:"template,omitempty" doc:"One still being written; without it the newest enabled version."`
		Post     map[string]any   `json:"post" doc:"A raw payload, whose template.vars are the sample."`
	}
}

var templates = door.List{Function: "list_templates", Nested: "after", Key: []door.Column{
	{Name: "template_id", Filter: "template_id", Valid: door.ValidText},
	{Name: "platform", Filter: "platform", Valid: door.ValidText},
	{Name: "version", Filter: "version", Valid: door.ValidNumber},
}}

// orNil is null for an empty text.
func orNil(text string) any {
	if text == "" {
		return nil
	}
	return text
}

func registerTemplates(d *door.Door) {
	door.Register(d, door.Operation{
		ID: "list-templates", Method: http.MethodGet, Path: "/templates", Summary: "Templates by name", Answer: door.Listed[templateRow]{},
		Description: "Every version, by name and platform, the newest first; built-in ones too.",
	}, func(ctx context.Context, in *templatesInput) (door.Reply, error) {
		return d.Read(ctx, templates, in.Page, map[string]any{"platform": in.Platform})
	})
	door.Register(d, door.Operation{
		ID: "get-template", Method: http.MethodGet, Path: "/templates/{id}", Summary: "The versions of a template", Answer: door.Listed[templateRow]{},
		Description: "By platform, the newest first.",
	}, func(ctx context.Context, in *struct {
		door.Page
		IDPath
	}) (door.Reply, error) {
		if _, err := d.One(ctx, templates.Function, "", "This workspace has no such template.", map[string]any{"template_id": in.ID}); err != nil {
			return door.Reply{}, err
		}
		return d.Read(ctx, templates, in.Page, map[string]any{"template_id": in.ID})
	})
	door.Register(d, door.Operation{
		ID: "put-template", Method: http.MethodPut, Path: "/templates/{id}", Summary: "Write a version of a template", Answer: templatePut{},
		Example:     map[string]any{"platform": "telegram", "template": map[string]any{"body": "{title}"}, "reason": "a new look"},
		Description: "The next version; posts that are enqueued from now on use it. A version never changes.",
	}, func(ctx context.Context, in *putTemplateInput) (door.Reply, error) {
		return d.Do(ctx, in.Act, door.Write{Function: "put_template", Reason: in.Body.Reason,
			Args: map[string]any{"template_id": in.ID, "platform": orNil(in.Body.Platform), "template": in.Body.Template}})
	})
	door.Register(d, door.Operation{
		ID: "enable-template", Method: http.MethodPost, Path: "/templates/{id}/enable", Summary: "Take a version out of use, or back into it", Answer: templatePut{},
		Example:     map[string]any{"platform": "telegram", "version": 3, "enabled": false, "reason": "a mistake in it"},
		Description: "The newest enabled version is used. What is rendered already stays.",
	}, func(ctx context.Context, in *enableTemplateInput) (door.Reply, error) {
		return d.Do(ctx, in.Act, door.Write{Function: "enable_template", Reason: in.Body.Reason,
			Args: map[string]any{"template_id": in.ID, "platform": orNil(in.Body.Platform), "version": in.Body.Version, "enabled": in.Body.Enabled}})
	})
	door.Register(d, door.Operation{
		ID: "preview-template", Method: http.MethodPost, Path: "/templates/{id}/preview", Summary: "How a post looks in a template", Answer: templatePreview{},
		Example:     map[string]any{"platform": "telegram", "template": map[string]any{"body": "{title}"}, "post": map[string]any{"template": map[string]any{"name": "digest", "vars": map[string]any{"title": "Hello"}}}},
		Description: "Renders a sample post in a template, stored or still being written. Writes nothing.",
	}, func(ctx context.Context, in *previewTemplateInput) (door.Reply, error) {
		var template any
		if in.Body.Template != nil {
			template = in.Body.Template
		}
		return d.Look(ctx, "preview_template", "There is no preview.", map[string]any{
			"template_id": in.ID, "platform": in.Body.Platform, "template": template, "post": in.Body.Post})
	})
}

package web

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"autopost/internal/configfile"
	"autopost/internal/problem"
)

// configData is the content of the page of the configuration file.
type configData struct {
	Format, Text, Prune string
	Diff                *configDiff
	Applied             bool
	Fault, Detail       string
	Faults              []problem.Fault
}

// configDiff are the changes that a file makes.
type configDiff struct {
	Reason  string       `json:"reason"`
	Items   []configItem `json:"items"`
	Unnamed []string     `json:"unnamed"`
	Ignored []string     `json:"ignored"`
	Digest  string       `json:"digest"`
}

// configItem is a changed object.
type configItem struct {
	Kind    string `json:"kind"`
	ID      string `json:"id"`
	Created bool   `json:"created"`
	Before  row    `json:"before"`
	After   row    `json:"after"`
	Note    string `json:"note"`
}

// changes are the changed fields in words.
func (i configItem) changes(v *view) []configChange {
	return v.changesOf(configfile.Resource{Name: i.Kind}, dryAnswer{Before: i.Before, After: i.After})
}

var configFormats = []string{"yaml", "channels", "feeds"}

func (s *server) config(v *view) {
	if !v.owner() {
		return
	}
	d := configData{Format: v.r.URL.Query().Get("format")}
	if !slices.Contains(configFormats, d.Format) {
		d.Format = "yaml"
	}
	v.render(http.StatusOK, configPage(v, d))
}

// exportConfig sends the configuration as a file.
func (s *server) exportConfig(v *view) {
	var file struct{ Text string }
	if err := v.get("/config", &file); err != nil {
		v.fail(err)
		return
	}
	v.w.Header().Set("Content-Type", "application/yaml; charset=utf-8")
	v.w.Header().Set("Content-Disposition", "attachment; filename*=UTF-8''"+url.PathEscape("autopost-"+v.workspace.WorkspaceID+"-"+v.now.UTC().Format(time.DateOnly)+".yaml"))
	_, _ = v.w.Write([]byte(file.Text)) // the caller may be gone
}

// applyConfig shows what a file changes, or applies it.
func (s *server) applyConfig(v *view) {
	d := configData{Format: cmp.Or(v.form.Get("format"), "yaml"), Text: strings.ReplaceAll(cmp.Or(v.form.Get("file"), v.form.Get("text")), "\r\n", "\n"), Prune: v.form.Get("prune")}
	body := map[string]any{"format": d.Format, "text": d.Text, "prune": d.Prune == "true" && d.Format == "yaml"}
	digest := v.form.Get("digest")
	if digest != "" {
		if !v.confirmed() {
			return
		}
		body["digest"], body["reason"] = digest, cmp.Or(strings.TrimSpace(v.form.Get("reason")), v.t("reason.config"))
		err := v.post("/config/apply", body)
		if err == nil {
			v.done("/setup/config", "config")
			return
		}
		if !d.refuse(v, err) {
			v.fail(err)
			return
		}
		delete(body, "digest")
	}
	if d.Text == "" {
		d.Fault = v.t("config.empty")
		v.render(http.StatusUnprocessableEntity, configPage(v, d))
		return
	}
	var diff configDiff
	err := v.call(http.MethodPost, "/config/diff", body, &diff)
	switch {
	case err == nil && digest == "":
		d.Diff = &diff
		v.render(http.StatusOK, configPage(v, d))
	case err == nil:
		d.Diff = &diff
		v.render(http.StatusConflict, configPage(v, d))
	case d.refuse(v, err):
		v.render(http.StatusUnprocessableEntity, configPage(v, d))
	default:
		v.fail(err)
	}
}

// refuse shows a refusal of a file. It returns false for another error.
func (d *configData) refuse(v *view, err error) bool {
	var p *problem.Problem
	if !errors.As(err, &p) || p.Status >= http.StatusInternalServerError || p.Status == http.StatusForbidden {
		return false
	}
	d.Fault, d.Faults = v.t("config.wrong"), p.Errors
	if p.Status == http.StatusConflict {
		d.Fault = v.t("config.changed")
	} else if len(p.Errors) == 0 {
		d.Detail = p.Detail
	}
	return true
}

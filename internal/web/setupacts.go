package web

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"autopost/internal/problem"
)

// askRow returns the question that the address asks for, with what a dry run says about it.
func (v *view) askRow(d rowData) (*question, error) {
	act := v.r.URL.Query().Get("ask")
	if act == "" || d.Of.acts == nil || !slices.Contains(d.Of.acts(v, d.Row), act) {
		return nil, nil //nolint:nilnil // there is no question
	}
	key := "ask." + d.Of.word() + "." + act
	q := &question{Act: act, Action: d.Of.address(d.ID) + "/" + act, Back: d.Of.address(d.ID), Title: v.t(v.known(key, "ask.setup."+act), d.Of.name(d.Row)),
		Text: v.t(v.known(key+".text", "ask.setup."+act+".text")), Button: v.actWord(d.Of, act)}
	q.Hours, q.Code = act == "pause" || act == "replay", act == "confirm"
	if act == "rotate" {
		return q, nil
	}
	answer, err := v.runAct(d.Of, d.ID, act, true, url.Values{"hours": {"1"}, "code": {"x"}})
	var p *problem.Problem
	if errors.As(err, &p) && p.Status < http.StatusInternalServerError {
		if p.Reason != "" && p.Reason != "wrong_code" {
			q.Refused, _ = v.refusal(p)
		}
		return q, nil
	}
	if err != nil {
		return nil, err
	}
	if act == "replay" {
		q.Text += " " + v.n("ask.events", answer.Queued)
	}
	if len(answer.Channels) > 0 {
		q.Text += " " + v.n("ask.channels", len(answer.Channels)) + " " + v.n("ask.waiting", answer.Waiting)
	}
	return q, nil
}

// known returns the first key that has words.
func (v *view) known(keys ...string) string {
	for _, key := range keys {
		if v.or(key, "") != "" {
			return key
		}
	}
	return keys[len(keys)-1]
}

// runAct calls the operation of an act.
func (v *view) runAct(o *resource, id, act string, dry bool, given url.Values) (answer dryAnswer, err error) {
	body := map[string]any{"reason": cmp.Or(strings.TrimSpace(given.Get("reason")), v.t("reason.setup"))}
	method, target := http.MethodPost, o.operation(id)+"/"+act
	switch act {
	case "pause":
		body["seconds"] = hours(given.Get("hours")) * 3600
	case "replay":
		body["failed_only"], body["since"] = true, v.now.Add(-time.Duration(hours(given.Get("hours")))*time.Hour).Format(time.RFC3339)
	case "confirm":
		body["code"] = strings.TrimSpace(given.Get("code"))
	case "enable", "disable":
		if !slices.Contains([]string{"/channels", "/groups", "/endpoints"}, o.path) || o.path == "/endpoints" && act == "enable" {
			method, target, body["enabled"] = http.MethodPatch, o.operation(id), act == "enable"
		}
	}
	if dry && o.path == "/webhooks" && act == "test" {
		return answer, nil // it has no dry run
	}
	if dry {
		target += "?dry_run=true"
	}
	return answer, v.call(method, target, body, &answer)
}

// hours is the length of a pause; an hour for a wrong text.
func hours(text string) int {
	n := 0
	for _, c := range text {
		if c < '0' || c > '9' || n > 8760 {
			return 1
		}
		n = n*10 + int(c-'0')
	}
	return min(max(n, 1), 8760)
}

// stepUpActs need the password again.
var stepUpActs = []string{"remove", "rotate"}

func (v *view) actOnRow(o *resource, id, act string) {
	if v.or("act."+o.word()+"."+act, v.or("act."+act, "")) == "" { // every act has a word
		v.fail(errNotFound)
		return
	}
	d, err := v.readRow(o, id)
	if err != nil {
		v.fail(err)
		return
	}
	if o.acts == nil || !slices.Contains(o.acts(v, d.Row), act) {
		if !o.mayChange(v) {
			v.fail(problem.NotAllowed.Says("%s", v.t("error.role", v.t("role."+cmp.Or(o.changes, "operator")))))
			return
		}
		v.fail(problem.Refused.Says("%s", v.t("setup.not_now")))
		return
	}
	if slices.Contains(stepUpActs, act) && !v.confirmed() {
		return
	}
	if act == "rotate" {
		v.rotate(d)
		return
	}
	if _, err := v.runAct(o, id, act, false, v.form); err != nil {
		var p *problem.Problem
		if errors.As(err, &p) && p.Reason != "" && v.or("refused."+p.Reason, "") != "" {
			v.fail(problem.Refused.Says("%s", v.t("refused."+p.Reason)))
			return
		}
		v.fail(err)
		return
	}
	if act == "remove" || act == "lift" {
		v.done(o.list(), "removed")
		return
	}
	v.done(o.address(id), "act_"+act)
}

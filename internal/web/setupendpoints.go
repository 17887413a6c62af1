package web

import (
	"cmp"
	"net/http"

	"autopost/internal/configfile"
)

var endpointResource = &resource{
	section: "/setup/endpoints", path: "/endpoints", id: "endpoint_id", kind: configfile.KindOf("endpoint"), changes: "owner",
	first: []string{"kind", "moderated", "ingress_rps"},
	state: func(_ *view, r row) string {
		if r.is("enabled") && r.text("kind") != "pull_source" && !r.is("has_secret") && r["signing_ref"] == nil {
			return "held"
		}
		return healthOf(r)
	},
	sub: func(v *view, r row) string { return v.t("value." + r.text("kind")) },
	why: func(v *view, r row) string {
		if r.text("kind") != "pull_source" && !r.is("has_secret") && r["signing_ref"] == nil {
			return v.t("endpoints.no_secret")
		}
		if r.is("moderated") {
			return v.t("channel.moderated")
		}
		return ""
	},
	acts: func(v *view, r row) []string {
		if !v.may("owner") {
			return nil
		}
		if r.text("kind") == "webhook_push" && r["signing_ref"] == nil {
			return []string{"rotate", switched(r)}
		}
		return []string{switched(r)}
	},
	read: func(_ *view, d *rowData) error {
		if d.Row != nil && d.Row.text("kind") == "webhook_push" && d.Row["signing_ref"] == nil {
			d.Extra = d.Row.text("kind")
		}
		return nil
	},
	extra: endpointTry,
}

// rotate makes a copy of an endpoint with a new secret, or gives an endpoint without a secret its first one.
func (v *view) rotate(d rowData) {
	secret := Token()
	body := map[string]any{"secret_hash": TokenHash(secret), "reason": cmp.Or(v.form.Get("reason"), v.t("reason.setup"))}
	var answer dryAnswer
	if err := v.call(http.MethodPost, d.Of.operation(d.ID)+"/rotate", body, &answer); err != nil {
		v.fail(err)
		return
	}
	fresh, err := v.readRow(d.Of, cmp.Or(answer.EndpointID, d.ID))
	if err != nil {
		v.fail(err)
		return
	}
	fresh.Once = secret
	v.renderRow(http.StatusOK, fresh)
}

// curl is a line that sends a post to an endpoint.
func (v *view) curl(secret string) string {
	return "curl " + v.site() + `/hooks/push -H 'Authorization: Bearer ` + cmp.Or(secret, v.t("endpoints.your_secret")) + `' -H 'Content-Type: application/json' -d '{"text": "` + v.t("endpoints.hello") + `"}'`
}

package web

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"autopost/internal/problem"
)

// setting is a value that the database decides by.
type setting struct {
	Key      string   `json:"key"`
	Value    any      `json:"value"`
	Default  any      `json:"default_value"`
	Meaning  string   `json:"meaning"`
	Least    *float64 `json:"least"`
	Most     *float64 `json:"most"`
	Internal bool     `json:"internal"`
}

var unitOfSetting = regexp.MustCompile(`_(seconds|ms|minutes|hours|days|bytes)(?:_|$)`)

// unit is the unit of the number in words.
func (s setting) unit(v *view) string {
	if m := unitOfSetting.FindStringSubmatch(s.Key); m != nil {
		return v.or("unit."+m[1], "")
	}
	return ""
}

// text is a value as a person types it.
func (s setting) text(value any) string {
	if n, ok := value.(float64); ok {
		return number(n)
	}
	return jsonText(value, "")
}

// changed reports whether the value differs from its default.
func (s setting) changed() bool { return s.text(s.Value) != s.text(s.Default) }

// limits are the bounds in words.
func (s setting) limits(v *view) string {
	if s.Least == nil {
		return ""
	}
	return v.bounds(*s.Least, s.Most, s.unit(v))
}

// settingsData is the content of the page of settings.
type settingsData struct {
	Settings []setting
	// Open is the setting whose form is shown, Written what the person wrote.
	Open, Written, Fault, Detail string
}

func (s *server) settings(v *view) {
	v.showSettings(http.StatusOK, settingsData{Open: v.r.URL.Query().Get("key")})
}

func (v *view) showSettings(status int, d settingsData) {
	var got page[setting]
	target := "/settings?limit=200"
	for {
		if err := v.get(target, &got); err != nil {
			v.fail(err)
			return
		}
		for _, one := range got.Items {
			if !one.Internal {
				d.Settings = append(d.Settings, one)
			}
			if one.Key == d.Open && d.Written == "" {
				d.Written = one.text(one.Value)
			}
		}
		if got.NextCursor == nil {
			break
		}
		target = "/settings?limit=200&cursor=" + url.QueryEscape(*got.NextCursor)
		got = page[setting]{}
	}
	v.render(status, settingsPage(v, d))
}

// setSetting changes a setting of the installation.
func (s *server) setSetting(v *view) {
	if !v.session.InstallationOwner {
		v.fail(problem.NotAllowed.Says("%s", v.t("settings.owner")))
		return
	}
	if !v.confirmed() {
		return
	}
	d := settingsData{Open: v.form.Get("key"), Written: strings.TrimSpace(v.form.Get("value"))}
	var value any
	if v.form.Has("reset") {
		d.Written = "null"
	}
	if json.Unmarshal([]byte(d.Written), &value) != nil {
		d.Fault = v.t("settings.form")
		v.showSettings(http.StatusUnprocessableEntity, d)
		return
	}
	body := map[string]any{"value": value, "reason": cmp.Or(strings.TrimSpace(v.form.Get("reason")), v.t("reason.setup"))}
	if err := v.call(http.MethodPatch, "/settings/"+pathOf(d.Open), body, nil); err != nil {
		if words := v.fault(err); words != "" {
			d.Fault, d.Detail = v.t("fault.value"), words
			v.showSettings(http.StatusUnprocessableEntity, d)
			return
		}
		v.fail(err)
		return
	}
	v.done("/setup/settings", "saved")
}

// limits shows quotas, budgets and rate groups, each with its use.
func (s *server) limits(v *view) {
	var lists []rowList
	for _, o := range []*resource{groupResource, quotaResource, budgetResource} {
		list, err := v.rows(o)
		if err != nil {
			v.fail(err)
			return
		}
		lists = append(lists, list)
	}
	v.render(http.StatusOK, limitsPage(v, lists))
}

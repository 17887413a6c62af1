package web

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"

	"autopost/internal/api/rest"
	"autopost/internal/problem"
)

// peopleSlice is how many people and invitations the page lists at once.
const peopleSlice = 200

// member is a person of the workspace.
type member struct {
	UserID  string    `json:"user_id"`
	Email   string    `json:"email"`
	Name    string    `json:"name"`
	Role    string    `json:"role"`
	Enabled bool      `json:"enabled"`
	Since   time.Time `json:"since"`
	// InstallationOwner means that the person changes settings and creates workspaces.
	InstallationOwner bool `json:"installation_owner"`
}

// invitationRow is an invitation that is open.
type invitationRow struct {
	InvitationID string    `json:"invitation_id"`
	Email        string    `json:"email"`
	Role         string    `json:"role"`
	InvitedBy    string    `json:"invited_by"`
	ExpiresAt    time.Time `json:"expires_at"`
}

// peopleData is the content of the page of people.
type peopleData struct {
	Members     []member
	Next        string // cursor of further members
	Invitations []invitationRow
	// Link is the address of a new invitation; it is shown once.
	Link, LinkFor string
	Email, Role   string
	// WorkspaceID and WorkspaceName are those of a new workspace that was refused.
	WorkspaceID, WorkspaceName string
	Fault                      string
}

func (s *server) setup(v *view) {
	first, err := v.firstRun()
	if err != nil {
		v.fail(err)
		return
	}
	v.render(http.StatusOK, setupPage(v, first))
}

// owner answers with a refusal unless the person is an owner.
func (v *view) owner() bool {
	if v.may(rest.Owner) {
		return true
	}
	v.fail(problem.NotAllowed.Says("%s", v.t("error.owner", v.t("role."+v.workspace.Role))))
	return false
}

func (s *server) people(v *view) {
	if v.owner() {
		v.showPeople(http.StatusOK, peopleData{Role: rest.Editor})
	}
}

func (v *view) showPeople(status int, d peopleData) {
	var members page[member]
	var invitations page[invitationRow]
	limit := num(peopleSlice)
	for target, into := range map[string]any{addressOf("/users", "limit", limit, "cursor", v.r.URL.Query().Get("cursor")): &members, "/invitations?limit=" + limit: &invitations} {
		if err := v.get(target, into); err != nil {
			v.fail(err)
			return
		}
	}
	d.Members, d.Invitations = members.Items, invitations.Items
	if members.NextCursor != nil {
		d.Next = *members.NextCursor
	}
	v.render(status, peoplePage(v, d))
}

// actOnPeople invites a person, ends an invitation, or changes a role.
func (s *server) actOnPeople(v *view) {
	if !v.owner() || !v.confirmed() {
		return
	}
	act, id, reason := v.r.PathValue("act"), v.form.Get("id"), v.t("reason.people")
	switch act {
	case "invite":
		v.invite()
		return
	case "workspace":
		v.createWorkspace()
		return
	}
	if uuid.Validate(id) != nil {
		v.fail(errNotFound)
		return
	}
	if accountActs[act] {
		v.actOnAccount(act, id)
		return
	}
	var err error
	switch act {
	case "role":
		err = v.call(http.MethodPatch, "/users/"+id, map[string]any{"role": v.form.Get("role"), "reason": reason}, nil)
	case "remove":
		err = v.call(http.MethodPatch, "/users/"+id, map[string]any{"leave": true, "reason": reason}, nil)
	case "revoke":
		err = v.call(http.MethodDelete, "/invitations/"+id, map[string]any{"reason": reason}, nil)
	default:
		err = errNotFound
	}
	v.peopleDone(err, act)
}

func (v *view) invite() {
	d := peopleData{Email: strings.TrimSpace(v.form.Get("email")), Role: v.form.Get("role")}
	var made struct {
		Path string `json:"path"`
	}
	err := v.call(http.MethodPost, "/invitations", map[string]any{"email": d.Email, "role": d.Role, "reason": v.t("reason.people")}, &made)
	switch {
	case err == nil:
		v.showPeople(http.StatusOK, peopleData{Link: v.site() + made.Path, LinkFor: d.Email, Role: rest.Editor})
	case v.fault(err) != "":
		d.Fault = v.or("refused."+problemReason(err), v.fault(err))
		v.showPeople(http.StatusUnprocessableEntity, d)
	default:
		v.fail(err)
	}
}

// site is the address of this daemon, as the person reaches it.
func (v *view) site() string {
	switch {
	case v.s.public != nil:
		return v.s.public.Scheme + "://" + v.s.public.Host
	case v.r.TLS != nil || strings.EqualFold(v.r.Header.Get("X-Forwarded-Proto"), "https"):
		return "https://" + v.r.Host
	}
	return "http://" + v.r.Host
}

// keyRow is an API key without its secret.
type keyRow struct {
	KeyID      string     `json:"key_id"`
	Name       string     `json:"name"`
	Role       string     `json:"role"`
	Scopes     []string   `json:"scopes"`
	Enabled    bool       `json:"enabled"`
	ExpiresAt  *time.Time `json:"expires_at"`
	LastUsedAt *time.Time `json:"last_used_at"`
	CreatedAt  time.Time  `json:"created_at"`
}

// works reports whether the key is accepted.
func (k keyRow) works(now time.Time) bool {
	return k.Enabled && (k.ExpiresAt == nil || k.ExpiresAt.After(now))
}

// keysData is the content of the page of API keys.
type keysData struct {
	Keys []keyRow
	Next string
	// Secret is a new key; it is shown once.
	Secret     string
	Name, Role string
	Fault      string
}

func (s *server) keys(v *view) {
	if v.owner() {
		v.showKeys(http.StatusOK, keysData{Role: rest.Editor})
	}
}

func (v *view) showKeys(status int, d keysData) {
	var keys page[keyRow]
	target := "/keys"
	if cursor := v.r.URL.Query().Get("cursor"); cursor != "" {
		target += "?cursor=" + url.QueryEscape(cursor)
	}
	if err := v.get(target, &keys); err != nil {
		v.fail(err)
		return
	}
	d.Keys = keys.Items
	if keys.NextCursor != nil {
		d.Next = *keys.NextCursor
	}
	v.render(status, keysPage(v, d))
}

// actOnKeys creates a key or disables one.
func (s *server) actOnKeys(v *view) {
	if !v.owner() || !v.confirmed() {
		return
	}
	form := v.form
	switch v.r.PathValue("act") {
	case "add":
		d := keysData{Name: strings.TrimSpace(form.Get("name")), Role: form.Get("role")}
		var made struct {
			Key string `json:"key"`
		}
		err := v.call(http.MethodPost, "/keys", map[string]any{"name": d.Name, "role": d.Role, "reason": v.t("reason.keys")}, &made)
		switch {
		case err == nil:
			v.showKeys(http.StatusOK, keysData{Secret: made.Key, Name: d.Name, Role: rest.Editor})
		case v.fault(err) != "":
			d.Fault = v.fault(err)
			v.showKeys(http.StatusUnprocessableEntity, d)
		default:
			v.fail(err)
		}
	case "disable":
		id := form.Get("id")
		if uuid.Validate(id) != nil {
			v.fail(errNotFound)
			return
		}
		if err := v.post("/keys/"+id+"/disable", map[string]any{"reason": v.t("reason.keys")}); err != nil {
			v.fail(err)
			return
		}
		v.done("/setup/keys", "key_disabled")
	default:
		v.fail(errNotFound)
	}
}

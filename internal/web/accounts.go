package web

import (
	"net/http"
	"net/url"
	"strings"
)

// accountActs are the acts on an account of the installation, for its owners.
var accountActs = map[string]bool{"disable": true, "enable": true, "sign-out": true, "make-owner": true, "unmake-owner": true}

// actsOn are the acts that the person may do on the account of a member.
func (v *view) actsOn(m member) []string {
	if !v.session.InstallationOwner {
		return nil
	}
	acts := []string{"sign-out"}
	switch {
	case !m.Enabled:
		acts = append(acts, "enable")
	case m.UserID != v.session.UserID:
		acts = append(acts, "disable")
	}
	if m.InstallationOwner {
		return append(acts, "unmake-owner")
	}
	return append(acts, "make-owner")
}

// actOnAccount changes an account, or ends its sessions.
func (v *view) actOnAccount(act, id string) {
	at, reason := "/users/"+url.PathEscape(id), v.t("reason.people")
	var err error
	switch act {
	case "sign-out":
		err = v.post(at+"/sign-out", map[string]any{"reason": reason})
	case "disable", "enable":
		err = v.call(http.MethodPatch, at, map[string]any{"enabled": act == "enable", "reason": reason}, nil)
	default:
		err = v.call(http.MethodPatch, at, map[string]any{"installation_owner": act == "make-owner", "reason": reason}, nil)
	}
	v.peopleDone(err, "account_"+act)
}

// createWorkspace makes a workspace and opens it.
func (v *view) createWorkspace() {
	id := strings.TrimSpace(v.form.Get("workspace_id"))
	err := v.post("/workspaces", map[string]any{"workspace_id": id, "name": strings.TrimSpace(v.form.Get("name")), "reason": v.t("reason.people")})
	if err == nil {
		v.remember(workspaceCookie, url.QueryEscape(id))
		v.redirect("/setup")
		return
	}
	v.peopleDone(err, "")
}

// peopleDone ends an act on the page of people.
func (v *view) peopleDone(err error, done string) {
	switch {
	case err == nil:
		v.done("/setup/people", done)
	case v.fault(err) != "" && problemStatus(err) != http.StatusForbidden && problemStatus(err) != http.StatusNotFound:
		v.showPeople(http.StatusConflict, peopleData{Role: "editor", Fault: v.or("refused."+problemReason(err), v.fault(err)), WorkspaceID: v.form.Get("workspace_id"), WorkspaceName: v.form.Get("name")})
	default:
		v.fail(err)
	}
}

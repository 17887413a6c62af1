package web

import (
	"net/http"
	"strings"

	"autopost/internal/password"
	"autopost/internal/problem"
)

// inviteForm is the form behind a link.
type inviteForm struct {
	*Invitation

	// Email, Name and Workspace are what the person wrote, or what the link says.
	Email, Name, Workspace string
	Fault                  string
	Insecure               bool
	// Created means that the person made a new workspace, which is empty.
	Created bool
}

func (f inviteForm) title(v *view) string {
	if f.Kind == "first" {
		return v.t("first.title")
	}
	return v.t("invite.title", f.Invitation.Workspace)
}

func (f inviteForm) text(v *view) string {
	switch {
	case f.Kind == "first":
		return v.t("first.text")
	case f.UserID != "":
		return v.t("invite.known", f.Email, v.t("role."+f.Role))
	}
	return v.t("invite.text", f.Email, v.t("role."+f.Role))
}

// invited returns the form behind the link of the request. It answers and returns false for a link that does not work.
func (v *view) invited() (inviteForm, bool) {
	invitation, err := v.s.Store.GetInvitation(v.r.Context(), TokenHash(v.r.PathValue("token")))
	if err != nil {
		v.fail(err)
		return inviteForm{}, false
	}
	if invitation == nil {
		v.fail(problem.UnknownPath.Says("%s", v.t("invite.ended")))
		return inviteForm{}, false
	}
	return inviteForm{Invitation: invitation, Email: invitation.Email, Insecure: !v.isSecure()}, true
}

func (s *server) showInvitation(v *view) {
	if form, ok := v.invited(); ok {
		v.render(http.StatusOK, invitePage(v, form))
	}
}

// accept makes the person behind a link a member, or the first owner, and signs in.
func (s *server) accept(v *view) {
	form, ok := v.invited()
	if !ok {
		return
	}
	if form.Insecure {
		v.render(http.StatusForbidden, invitePage(v, form))
		return
	}
	form.Name, form.Workspace = strings.TrimSpace(v.form.Get("name")), strings.TrimSpace(v.form.Get("workspace"))
	if form.Kind == "first" {
		form.Email = strings.TrimSpace(v.form.Get("email"))
	}
	user, status, err := v.join(&form)
	if err == nil && user != "" {
		err = v.begin(user)
	}
	switch {
	case err != nil && v.fault(err) != "":
		form.Fault = v.fault(err)
		v.render(http.StatusUnprocessableEntity, invitePage(v, form))
	case err != nil:
		v.fail(err)
	case user == "":
		v.render(status, invitePage(v, form))
	case form.Created:
		v.redirect("/setup")
	default:
		v.redirect("/")
	}
}

// join returns the id of the person who joined, or "" and the status of the form with its fault.
func (v *view) join(form *inviteForm) (user string, status int, err error) {
	given, link := v.form.Get("password"), TokenHash(v.r.PathValue("token"))
	if form.UserID != "" {
		ok, fault, status, err := v.proves(form.Email, given, form.PasswordHash)
		if err != nil || !ok {
			form.Fault = fault
			return "", status, err
		}
		return v.joined(form, func() (Done, error) {
			return v.s.Store.AcceptInvitation(v.r.Context(), link, form.UserID, NewPerson{})
		})
	}
	if wrong := password.Fault(given); wrong != "" {
		form.Fault = v.t("person.password.fault", password.Least, password.Most)
		return "", http.StatusUnprocessableEntity, nil
	}
	if form.Kind == "first" && form.Workspace == "" {
		form.Fault = v.t("invite.workspace.fault")
		return "", http.StatusUnprocessableEntity, nil
	}
	hash, err := password.Hash(v.r.Context(), given)
	if err != nil {
		return "", 0, err
	}
	person := NewPerson{Email: form.Email, Name: form.Name, PasswordHash: hash}
	return v.joined(form, func() (Done, error) {
		if form.Kind == "first" {
			return v.s.Store.CreateOwner(v.r.Context(), form.Workspace, link, person)
		}
		return v.s.Store.AcceptInvitation(v.r.Context(), link, "", person)
	})
}

func (v *view) joined(form *inviteForm, join func() (Done, error)) (user string, status int, err error) {
	done, err := join()
	if err == nil && !done.Applied {
		form.Fault = v.t("invite.ended")
		return "", http.StatusConflict, nil
	}
	form.Created = done.Created
	return done.UserID, 0, err
}

package web

import (
	"net/http"
	"slices"

	"autopost/internal/api/rest"
	"autopost/internal/problem"
)

// workspaceHeader names the workspace of a request to the API with a session.
const workspaceHeader = "X-Autopost-Workspace"

// Sessions lets people who are signed in use the API with the cookie of their session. A request that changes something
// needs the token of the session's forms as X-Autopost-CSRF. X-Autopost-Workspace names the workspace; without it, it
// is the one that the pages show.
func Sessions(deps Deps) rest.Sessions {
	s := newServer(deps)
	return func(r *http.Request) (*rest.Key, *problem.Problem, error) {
		v := &view{s: s, r: r}
		if err := v.resolve(); err != nil || v.session == nil {
			return nil, nil, err
		}
		if !v.safe() && (s.origin.Check(r) != nil || !v.hasToken()) {
			return nil, problem.NoToken.Says("The request must have the token of the forms of this session. Send it as %s.", tokenHeader), nil
		}
		wanted := r.Header.Get(workspaceHeader)
		if wanted != "" && !slices.ContainsFunc(v.session.Workspaces, func(m Membership) bool { return m.WorkspaceID == wanted }) || len(v.session.Workspaces) == 0 {
			return nil, problem.NotAllowed.Says("You are not a member of this workspace. Name one of yours by %s.", workspaceHeader), nil
		}
		v.choose()
		for _, m := range v.session.Workspaces {
			if m.WorkspaceID == wanted {
				v.workspace = m
			}
		}
		caller := v.caller()
		return &caller, nil, nil
	}
}

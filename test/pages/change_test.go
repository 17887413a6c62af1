package pages

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
)

func (s *site) changePaths() []string {
	return []string{"/posts/" + s.ids["sent"] + "?change=edit", "/posts/" + s.ids["sent"] + "?change=delete"}
}

// An editor changes a post that was sent or waits; the changes are requested, not made by the page.
func TestAPostIsChangedAfterItsSubmit(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := s.owner()
	waiting, sent := "/posts/"+s.ids["message"], "/posts/"+s.ids["sent"]
	page := p.get(waiting).body
	require.Contains(t, page, "?change=edit")
	require.NotContains(t, page, "?change=pin", "what is not sent is not pinned")
	require.Contains(t, page, "/calendar?at=")
	require.Contains(t, p.get(waiting+"?change=edit").body, "Change the text?")
	require.Equal(t, waiting+"?done=change_edit", p.post(waiting+"/change/edit", "text", "Мост перекроют завтра").header.Get("Location"))
	require.Equal(t, 3, pgtest.Value[int](s.DB, `select count(*)::int from autopost.deliveries where rendered_text = 'Мост перекроют завтра' and status = 'queued'`))

	require.Contains(t, p.get(sent).body, "?change=delete")
	require.Equal(t, sent+"?done=change_pin", p.post(sent+"/change/pin", "reason", "news").header.Get("Location"))
	require.Equal(t, "pin", pgtest.Value[string](s.DB, `select kind from autopost.post_acts`))
	require.Contains(t, p.get(sent).body, "Changes since it was sent")
	refused := p.post(sent+"/change/edit", "text", "<b>not closed", "reason", "r")
	require.Contains(t, []int{http.StatusSeeOther, http.StatusUnprocessableEntity, http.StatusConflict}, refused.status)
	viewer := s.member("viewer")
	require.NotContains(t, viewer.get(sent).body, "?change=")
	require.Equal(t, http.StatusForbidden, viewer.post(sent+"/change/delete").status)
	require.Equal(t, http.StatusNotFound, p.post(sent+"/change/explode").status)
}

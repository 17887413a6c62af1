package pages

import (
	"fmt"
	"image/color"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
)

func (s *site) decisionsPaths() []string {
	if s.ids["pictured"] == "" {
		s.ids["pictured"] = s.pending(fmt.Sprintf(`{"text": "With a picture %s", "media": [{"type": "image", "blob_ref": %q, "alt": "a lake"}]}`, "https://example.org/a", s.depict(color.RGBA{192, 138, 30, 255})))
		s.ids["decided"] = s.pending(`{"text": "Decided before"}`)
		s.Exec(`select autopost.decide_submission('news', $1::uuid, 'approve', '{"source": "sql"}', 'olga', 'fine')`, s.ids["decided"])
	}
	return []string{
		"/decisions/" + s.ids["pictured"], "/decisions/" + s.ids["decided"], "/decisions?view=history", "/decisions?view=queue",
		"/decisions/" + s.ids["submission"] + "?decided=" + s.ids["decided"],
	}
}

// unlimited lets the endpoint take any number of posts.
func (s *site) unlimited() {
	s.t.Helper()
	s.Exec(`update autopost.workspace_endpoints set ingress_rps = 1000, admitted_until = now() - interval '1 hour' where workspace_id = 'news' and endpoint_id = 'editors'`)
}

// pending submits a post that waits for a decision and returns its id.
func (s *site) pending(post string) string {
	s.t.Helper()
	s.unlimited()
	answer := s.JSON(`select autopost.receive_push('news', 'editors', jsonb_build_array($1::jsonb)) #> '{results,0}'`, post)
	require.Equal(s.t, "accepted", answer["status"], answer)
	return answer["submission_id"].(string)
}

// After a decision the next post opens; the decided one stays reachable, and what has not begun can be skipped.
func TestTheNextDecisionOpens(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := s.owner()
	queue := pgtest.Column[string](s.DB, `select submission_id::text from autopost.submissions where status = 'pending' order by submission_id desc`)
	page := p.get("/decisions").body
	for _, key := range []string{"j", "a", "r", "e"} {
		require.Contains(t, page, `data-key="`+key+`"`, "each key has a visible button")
	}
	require.Contains(t, p.get("/decisions/"+queue[1]).body, `data-key="k"`)
	at := "/decisions/" + queue[0] + "/approve"
	form := formOf(page, at)
	require.Equal(t, queue[1], form.Get("next"))
	answer := p.submit(at, form)
	require.Equal(t, "/decisions/"+queue[1]+"?decided="+queue[0]+"&done=approve", answer.header.Get("Location"))
	next := p.get(answer.header.Get("Location")).body
	require.Contains(t, next, "The post is approved.")
	require.Contains(t, next, `href="/decisions/`+queue[0]+`"`)
	decided := p.get("/decisions/" + queue[0]).body
	require.Contains(t, decided, "Ann approved this post.")
	require.Contains(t, decided, "?ask=skip", "nothing has begun")
	require.Contains(t, p.get("/decisions?view=history").body, "approved by Ann")

	bob := s.member("approver")
	second := bob.submit(at, formOf(strings.ReplaceAll(page, queue[0], queue[0]), at))
	require.Equal(t, http.StatusForbidden, second.status, "the token of another session")
	token := hiddenToken.FindStringSubmatch(bob.get("/setup").body)[1]
	form.Set("csrf", token)
	second = bob.submit(at, form)
	require.Equal(t, http.StatusConflict, second.status)
	require.Contains(t, second.body, "Ann approved this post.")
	require.NotContains(t, second.body, `class="note fail"`, "no error for the second person")

	reject := "/decisions/" + queue[1] + "/reject"
	require.Equal(t, http.StatusSeeOther, p.submit(reject, formOf(p.get("/decisions/"+queue[1]+"?form=reject").body, reject)).status)
	require.Contains(t, p.get("/decisions").body, "1 post waits for a decision.")
}

// A post that changed is shown again with its new text. An edit in place keeps what was written.
func TestAChangedPostIsShownAgain(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := s.owner()
	at := "/decisions/" + s.ids["submission"]
	form := formOf(p.get(at).body, at+"/approve")
	require.Equal(t, at+"?done=edit", p.post(at+"/edit", "text", hostileText()).header.Get("Location"))
	stale := p.submit(at+"/approve", form)
	require.Equal(t, http.StatusConflict, stale.status)
	require.Contains(t, stale.body, "The post changed after you opened it.")
	s.harmless(at, stale.body)
	for _, path := range []string{at, at + "?form=edit", at + "?form=reject", "/decisions", "/decisions?view=queue"} {
		p.harmless(path)
	}
	refused := p.post(at+"/edit", "text", "", "reason", "why "+hostile[1])
	require.Equal(t, http.StatusUnprocessableEntity, refused.status)
	s.harmless(at, refused.body)
	require.Contains(t, refused.body, `value="why &#34;&gt;&lt;img`)
}

// A large backlog has pages. A picture of the store is shown.
func TestManyPostsWaitForADecision(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := s.owner()
	for i := range 60 {
		s.pending(fmt.Sprintf(`{"text": "number %d of many"}`, i))
	}
	first := p.get("/decisions").body
	require.Contains(t, first, "63 posts wait for a decision.")
	require.Contains(t, first, "number 59 of many")
	require.NotContains(t, first, "number 3 of many")
	next := hrefWith(first, "cursor=")
	require.NotEmpty(t, next)
	second := p.get(next).body
	require.Contains(t, second, "number 3 of many")
	require.Contains(t, second, "cursor=", "the links stay in this page of the queue")
	require.Less(t, len(first), 100<<10)

	ref := s.depict(color.Black)
	id := s.pending(fmt.Sprintf(`{"text": "With a picture", "media": [{"type": "image", "blob_ref": %q, "alt": "a lake"}]}`, ref))
	page := p.get("/decisions/" + id).body
	require.Contains(t, page, `src="/api/v1/media/`+ref+`"`)
	require.Contains(t, page, `alt="a lake"`)
}

// hrefWith returns the last link of a page to an address with this part.
func hrefWith(page, part string) (found string) {
	for _, m := range hrefs.FindAllStringSubmatch(page, -1) {
		if strings.Contains(m[1], part) {
			found = strings.ReplaceAll(m[1], "&amp;", "&")
		}
	}
	return found
}

package pages

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/pgtest"
)

// areas list the addresses of the pages of each area.
var areas = []func(s *site) []string{(*site).firstPaths, (*site).framePaths, (*site).operationsPaths, (*site).setupPaths, (*site).credentialsPaths, (*site).composePaths, (*site).calendarPaths, (*site).decisionsPaths, (*site).xpostsPaths, (*site).botPaths, (*site).changePaths}

// paths are the addresses of all pages.
func (s *site) paths() (all []string) {
	for _, of := range areas {
		all = append(all, of(s)...)
	}
	return all
}

func (s *site) firstPaths() []string {
	return []string{
		"/", "/posts", "/posts?view=dead", "/posts?q=nothing-has-this", "/posts/" + s.ids["message"], "/posts/" + s.ids["dead"], "/posts/" + s.ids["sent"],
		"/posts/" + s.ids["dead"] + "?ask=retry", "/decisions", "/decisions/" + s.ids["submission"], "/decisions/" + s.ids["submission"] + "?form=edit",
		"/decisions/" + s.ids["submission"] + "?form=reject", "/channels", "/channels/city?ask=pause", "/setup", "/setup/people", "/setup/keys",
	}
}

// Each role sees and does what the API lets it.
func TestRolesOfThePages(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.owner()
	viewer, editor, approver, operator := s.member("viewer"), s.member("editor"), s.member("approver"), s.member("operator")
	for role, p := range map[string]*person{"viewer": viewer, "editor": editor, "approver": approver, "operator": operator} {
		for _, path := range s.paths() {
			want := http.StatusOK
			at, _, _ := strings.Cut(path, "?")
			if !p.mayOpen(path) || above[at] != "" && above[at] != role || strings.HasPrefix(path, "/compose") && role == "viewer" {
				want = http.StatusForbidden
			}
			require.Equal(t, want, p.get(path).status, path)
		}
	}
	dead, submission := "/posts/"+s.ids["dead"], "/decisions/"+s.ids["submission"]
	for _, c := range []struct {
		p    *person
		path string
		may  bool
	}{
		{viewer, submission + "/edit", false}, {editor, submission + "/edit", true}, {editor, submission + "/approve", false}, {approver, submission + "/approve", true},
		{approver, dead + "/retry", false}, {operator, dead + "/retry", true}, {approver, "/channels/city/pause", false}, {operator, "/channels/city/pause", true},
		{operator, "/setup/people/invite", false}, {operator, "/setup/keys/add", false},
	} {
		got := c.p.post(c.path, "reason", "r", "text", "edited", "name", "n", "role", "owner", "email", "x@example.org")
		if c.may {
			require.Equal(t, http.StatusSeeOther, got.status, c.path)
		} else {
			require.Contains(t, []int{http.StatusForbidden, http.StatusConflict}, got.status, c.path)
		}
	}
	require.NotContains(t, viewer.get(dead).body, "?ask=", "no action that is refused")
	require.NotContains(t, editor.get("/decisions").body, "Approve")
	require.Equal(t, 0, pgtest.Value[int](s.DB, `select count(*)::int from autopost.invitations`)+pgtest.Value[int](s.DB, `select count(*)::int from autopost.api_keys where role = 'owner'`))
}

func TestPostsAreFoundAndExplained(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := s.owner()
	message := "/posts/" + s.ids["message"]
	for query, found := range map[string]bool{"q=кузнечиху": true, "q=cms-4711": true, "q=%23мост": true, "q=bridge": false, "channel=city": true, "view=waiting": true, "view=dead": false,
		"from=2020-01-01&until=2030-01-01": true, "until=2020-01-01": false, "q=кузнечиху&channel=city&view=waiting": true, "q=кузнечиху&view=sent": false,
		"platform=telegram": true, "platform=max": false, "platform=telegram&view=dead": false} {
		got := p.get("/posts?" + query)
		require.Equal(t, http.StatusOK, got.status, query)
		require.Equal(t, found, strings.Contains(got.body, message), query)
	}
	require.Equal(t, http.StatusUnprocessableEntity, p.get("/posts?from=yesterday").status)
	require.Contains(t, p.get("/posts?platform=telegram&view=sent").body, `<option value="telegram" selected`)
	p.header.Set("HX-Target", "posts")
	require.True(t, strings.HasPrefix(p.get("/posts").body, `<section class="panel" id="posts"`), "a filter replaces the list alone")
	p.header.Del("HX-Target")

	page := p.get(message).body
	require.Contains(t, page, "0 of 3 channels have it")
	require.Contains(t, page, "The workspace is paused")
	require.Contains(t, page, "&lt;script&gt;alert(1)")
	require.Contains(t, p.get("/posts/"+s.ids["dead"]).body, "ended without being sent")
	require.Equal(t, http.StatusNotFound, p.get("/posts/x").status)
	require.Equal(t, http.StatusNotFound, p.get("/posts/0199c6a0-0000-7000-8000-000000000000").status)
	require.Contains(t, p.get(message+"?ask=skip").body, "Skip this post in 3 channels?")
	require.Equal(t, message+"?done=skip", p.post(message+"/skip", "reason", "too late").header.Get("Location"))
	require.Equal(t, 3, pgtest.Value[int](s.DB, `select count(*)::int from autopost.deliveries where message_id = $1::uuid and status = 'dead'`, s.ids["message"]))
	require.Equal(t, http.StatusConflict, p.post(message+"/skip").status, "nothing waits")
	p.cookies["autopost-language"] = "ru"
	require.Contains(t, p.get(message).body, "Есть в каналах: 0 из 3")
}

// The overview says for each group what waits, since when and why.
func TestTheOverviewSaysWhatWaits(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := s.owner()
	oldest := pgtest.Value[string](s.DB, `select to_char(min(due_at) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') from autopost.deliveries where status in ('queued', 'retry')`)
	p.header.Set("HX-Target", "waits")
	panel := p.get("/").body
	require.Contains(t, panel, "The workspace is paused")
	require.Contains(t, panel, `data-l="Oldest due:"><time datetime="`+oldest+`"`)
}

// A decision is bound to the plan that the person saw. A second decision says who decided.
func TestDecisions(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := s.owner()
	at := "/decisions/" + s.ids["submission"]
	require.Contains(t, p.get("/decisions").body, "3 posts wait for a decision.")
	digest := regexp.MustCompile(`name="digest" value="([0-9a-f]{64})"`).FindStringSubmatch(p.get(at).body)[1]
	require.Equal(t, at+"?done=edit", p.post(at+"/edit", "text", "Another text").header.Get("Location"))
	require.Contains(t, p.get(at).body, "Another text")
	stale := p.post(at+"/approve", "digest", digest)
	require.Equal(t, http.StatusConflict, stale.status)
	require.Contains(t, stale.body, "Another text", "the new plan is shown")
	require.Equal(t, "/decisions?done=reject", p.post(at+"/reject", "reason", "too early").header.Get("Location"))
	second := p.post(at + "/approve")
	require.Equal(t, http.StatusConflict, second.status)
	require.Contains(t, second.body, "Ann rejected this post.")
	require.Equal(t, "page", pgtest.Value[string](s.DB, `select decision_source from autopost.submissions where submission_id = $1::uuid`, s.ids["submission"]))
	require.Contains(t, p.get("/decisions").body, "2 posts wait for a decision.")
}

func TestPeopleAreInvited(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := s.owner()
	shown := p.post("/setup/people/invite", "email", "bob@example.org", "role", "approver")
	require.Equal(t, http.StatusOK, shown.status)
	link := regexp.MustCompile(`http://[^/"]+(/invite/[^"]+)`).FindStringSubmatch(shown.body)[1]
	require.NotContains(t, p.get("/setup/people").body, link, "a link is shown once")
	require.Contains(t, p.get("/setup/people").body, "bob@example.org")
	bob := s.person()
	require.Contains(t, bob.get(link).body, "bob@example.org")
	require.Equal(t, http.StatusSeeOther, bob.post(link, "name", "Bob", "password", "battery horse correct").status)
	require.Equal(t, http.StatusOK, bob.get("/decisions").status)
	require.Equal(t, http.StatusNotFound, bob.get(link).status)
	require.Equal(t, http.StatusUnprocessableEntity, p.post("/setup/people/invite", "email", "bob@example.org", "role", "viewer").status)
	require.Equal(t, http.StatusUnprocessableEntity, p.post("/setup/people/invite", "email", "nobody", "role", "viewer").status)
	id := pgtest.Value[string](s.DB, `select user_id::text from autopost.users where email = 'bob@example.org'`)
	require.Equal(t, http.StatusSeeOther, p.post("/setup/people/role", "id", id, "role", "viewer").status)
	require.NotContains(t, bob.get("/decisions").body, "Approve", "a role acts at once")
	own := pgtest.Value[string](s.DB, `select user_id::text from autopost.users where email = $1`, ann)
	require.Contains(t, p.post("/setup/people/remove", "id", own).body, "The last owner must stay")
	require.Equal(t, http.StatusSeeOther, p.post("/setup/people/remove", "id", id).status)
	require.Equal(t, http.StatusForbidden, bob.get("/decisions").status)

	result := s.Run(nil, "user", "invite", "bob@example.org", "--role", "editor", "--workspace", "news")
	require.Zero(t, result.Code, result.Stderr)
	again := regexp.MustCompile(`/invite/\S+`).FindString(result.Stdout)
	require.Equal(t, http.StatusUnauthorized, s.person().post(again, "password", "wrong horse battery").status, "an account that exists needs its password")
	require.Equal(t, http.StatusSeeOther, s.person().post(again, "password", "battery horse correct").status)
}

func TestKeysAreCreatedAndDisabled(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := s.owner()
	shown := p.post("/setup/keys/add", "name", "cms", "role", "viewer")
	key := regexp.MustCompile(`ap_[\w-]{43}`).FindString(shown.body)
	require.NotEmpty(t, key)
	list := func() int {
		got, err := s.Get(s.url+"/api/v1/channels", key)
		require.NoError(t, err)
		return got.Status
	}
	require.Equal(t, http.StatusOK, list())
	page := p.get("/setup/keys").body
	require.NotContains(t, page, key, "a key is shown once")
	require.Contains(t, page, "cms")
	require.Equal(t, http.StatusUnprocessableEntity, p.post("/setup/keys/add", "name", "", "role", "viewer").status)
	id := pgtest.Value[string](s.DB, `select key_id::text from autopost.api_keys`)
	require.Equal(t, http.StatusSeeOther, p.post("/setup/keys/disable", "id", id).status)
	require.Equal(t, http.StatusUnauthorized, list())
	require.NotContains(t, s.log(), key)
}

// A refused credential is on every page until another secret is set.
func TestARefusedCredentialIsOnEveryPage(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := s.owner()
	require.NotContains(t, p.get("/posts").body, `role="alert"`)
	s.Exec(`select autopost.raise_alert('news', 'auth_lost', 'credential:bot', '{"message": "the token was revoked"}', '{}')`)
	for _, path := range []string{"/", "/posts", "/decisions", "/channels", "/setup"} {
		page := p.get(path).body
		require.Contains(t, page, `role="alert"`, path)
		require.Contains(t, page, "autopost credential set", path)
	}
}

func TestChannelsArePausedAndResumed(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := s.owner()
	page := p.get("/channels").body
	require.Contains(t, page, "2 channels are not open.")
	require.Contains(t, page, "/channels/sport?ask=resume")
	require.Contains(t, p.get("/channels/sport?ask=disable").body, "Disable sport?")
	require.Equal(t, http.StatusSeeOther, p.post("/channels/sport/resume").status)
	require.Equal(t, http.StatusSeeOther, p.post("/channels/night/enable").status)
	require.Contains(t, p.get("/channels").body, "All channels are open.")
	require.Equal(t, http.StatusNotFound, p.post("/channels/nowhere/pause").status)
	require.Equal(t, http.StatusNotFound, p.post("/channels/city/explode").status)
}

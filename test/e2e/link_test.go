package e2e

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim/oauth"
	simx "autopost/internal/sim/twitter"
	"autopost/internal/sim/youtube"
	"autopost/internal/testing/pgtest"
	"autopost/internal/testing/port"
	"autopost/test/harness"
)

// owner is the owner of an account, in front of a browser.
type owner struct {
	h       *harness.Harness
	account string
	// before changes the address of the page, after the callback's; nil leaves it.
	before, after func(address url.Values)
	decision      string

	mu   sync.Mutex
	code string
	seen []string // what the pages said that were not as expected
}

var (
	selectName = regexp.MustCompile(`<select name="([a-z]+)">`)
	buttonName = regexp.MustCompile(`<button name="([a-z]+)" value="([a-z]+)">`)
)

// browse opens the address that a line shows, decides on the page, and follows it back.
func (o *owner) browse(line string) {
	address, err := url.Parse(strings.TrimSpace(line))
	if err != nil || !address.Query().Has("client_id") {
		return
	}
	if err := o.visit(address); err != nil {
		o.say(err.Error())
	}
}

func (o *owner) say(text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seen = append(o.seen, text)
}

func (o *owner) visit(address *url.URL) error {
	query := address.Query()
	if o.before != nil {
		o.before(query)
	}
	address.RawQuery = query.Encode()
	target := address.String() // the simulator's page: the base URL is not the platform's own
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := browser.Get(target)
	if err != nil {
		return err
	}
	shown, err := text(answer)
	if err != nil {
		return err
	}
	if answer.StatusCode == http.StatusOK {
		if answer, err = browser.PostForm(target, o.decide(shown)); err != nil {
			return err
		}
		_ = answer.Body.Close()
	}
	back, err := answer.Location()
	if err != nil {
		return errors.New(shown)
	}
	query = back.Query()
	if o.after != nil {
		o.after(query)
	}
	o.mu.Lock()
	o.code = query.Get("code")
	o.mu.Unlock()
	back.RawQuery = query.Encode()
	if answer, err = browser.Get(back.String()); err != nil {
		return err
	}
	shown, err = text(answer)
	o.say(shown)
	return err
}

// decide fills in the page's form.
func (o *owner) decide(page string) url.Values {
	form := url.Values{}
	if name := selectName.FindStringSubmatch(page); name != nil {
		form.Set(name[1], o.account)
	}
	for _, button := range buttonName.FindAllStringSubmatch(page, -1) {
		if button[2] == o.decision {
			form.Set(button[1], button[2])
		}
	}
	return form
}

func text(answer *http.Response) (string, error) {
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	return string(body), err
}

// linking is a platform whose accounts are linked by their owners' consent.
type linking struct {
	account, target string
	desk            func(h *harness.Harness) *oauth.ConsentPage
	setUp           func(t *testing.T, h *harness.Harness, callback string)
	film            bool
}

var linkings = map[string]linking{
	harness.X: {
		account: "42", target: "42",
		desk: func(h *harness.Harness) *oauth.ConsentPage { return h.World.X.Consent },
		setUp: func(t *testing.T, h *harness.Harness, callback string) {
			require.NoError(t, h.World.X.AddApp(simx.App{Name: "app", ClientID: "client", ClientSecret: "canary-hush", Callbacks: []string{callback}}))
			require.NoError(t, h.World.X.AddUser(simx.User{ID: "42", Username: "nyx"}))
		},
	},
	harness.YouTube: {
		account: "UCnyx-shows", target: "UCnyx-shows", film: true,
		desk: func(h *harness.Harness) *oauth.ConsentPage { return h.World.YouTube.Consent },
		setUp: func(t *testing.T, h *harness.Harness, callback string) {
			require.NoError(t, h.World.YouTube.AddProject(youtube.Project{ID: "app", ClientID: "client", ClientSecret: "canary-hush", Callbacks: []string{callback}}))
			require.NoError(t, h.World.YouTube.AddChannel(youtube.Channel{ID: "UCnyx-shows"}))
		},
	},
}

// An account is linked from the command line through the platform's own page, and posts.
// Each failure of the consent flow prints its reason and links nothing.
func TestLinkThroughTheConsentPage(t *testing.T) {
	for platform, l := range linkings {
		t.Run(platform, func(t *testing.T) {
			t.Parallel()
			h := harness.New(t)
			h.Exec(`insert into autopost.workspaces (workspace_id) values ('acme')`)
			h.Endpoint("acme", "in", "e2e-secret")
			listen := port.Free(t)
			l.setUp(t, h, "http://"+listen+"/callback")
			link := func(o *owner, listen, timeout string) harness.Result {
				o.h, o.account = h, l.account
				return h.RunInteractive(nil, `{"client_id": "client", "client_secret": "canary-hush"}`, o.browse,
					"credential", "link", "shop", "--platform", platform, "--listen", listen, "--timeout", timeout, "--reason", "the shop's account")
			}
			used := "canary-used-code"
			for name, c := range map[string]struct {
				owner          *owner
				listen         string
				says, pageSays string
			}{
				"denied":           {&owner{decision: "deny"}, listen, `refused the permission with "access_denied"`, "Read the terminal"},
				"another state":    {&owner{decision: "allow", after: func(q url.Values) { q.Set("state", "somebody-elses") }}, listen, "1 answers belonged to another request", "belongs to another request"},
				"another verifier": {&owner{decision: "allow", before: func(q url.Values) { q.Set("code_challenge", s256("another")) }}, listen, "verifier", "Done"},
				"another callback": {&owner{decision: "allow"}, port.Free(t), "no answer from the platform in time", "the callback is not registered"},
				"a code too old":   {&owner{decision: "allow", after: func(url.Values) { l.desk(h).Expire() }}, listen, "rejects the code", "Done"},
				"another's code":   {&owner{decision: "allow", after: func(q url.Values) { q.Set("code", used) }}, listen, "rejects the code", "Done"},
				"no PKCE":          {&owner{decision: "allow", before: func(q url.Values) { q.Del("code_challenge") }}, listen, `"invalid_request"`, ""},
			} {
				timeout := "240s"
				if c.pageSays != "Done" && c.pageSays != "Read the terminal" {
					timeout = "3s"
				}
				refused := link(c.owner, c.listen, timeout)
				require.Equal(t, 1, refused.Code, name)
				require.Contains(t, refused.Stderr, c.says, name)
				require.Contains(t, strings.Join(c.owner.seen, "\n"), c.pageSays, name)
				require.NotContains(t, refused.Stdout+refused.Stderr, "canary", name)
			}
			require.Zero(t, pgtest.Value[int](h.DB, `select count(*)::int from autopost.sealed_secrets`))

			good := &owner{decision: "allow"}
			done := link(good, listen, "20s")
			require.Zero(t, done.Code, done.Stderr)
			require.Contains(t, done.Stdout, "credential shop is sealed as version 1")
			again := link(&owner{decision: "allow", after: func(q url.Values) { q.Set("code", good.code) }}, listen, "20s")
			require.Equal(t, 1, again.Code, "a code is good once")
			require.Contains(t, again.Stderr, "rejects the code")

			h.Exec(`insert into autopost.channels (workspace_id, channel_id, platform, target_id, auth_ref, rate_group) values ('acme', 'shop', $1, $2, 'shop', 'shop')`,
				platform, l.target)
			d := h.Serve()
			require.Equal(t, http.StatusAccepted, h.Push(d, "e2e-secret", grantor{film: l.film}.post(h, "shop", 1)).Status)
			h.Until("the post is there", func() bool { return len(madeBy(h, "shop")) == 1 })
			h.Drained("acme")
			require.True(t, pgtest.Value[bool](h.DB, `select next_refresh_at > now() from autopost.credential_health`))
			for _, said := range []string{done.Stdout, done.Stderr, again.Stderr, d.Log()} {
				require.NotContains(t, said, good.code)
				require.NotContains(t, said, "canary")
			}
			h.Verified()
		})
	}
}

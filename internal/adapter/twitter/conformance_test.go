package twitter_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/adapter"
	"autopost/internal/adapter/adaptertest"
	"autopost/internal/adapter/twitter"
	"autopost/internal/sim"
	simx "autopost/internal/sim/twitter"
)

const (
	account = "42"
	signed  = `{"consumer_key":"ckey-canary","consumer_secret":"c/sec ret","access_token":"42-token-canary","access_token_secret":"t+secret"}`
)

// Both kinds of credentials go through the whole suite.
func TestConformance(t *testing.T) { adaptertest.Run(t, harness(t, signed)) }

func TestConformanceWithABareToken(t *testing.T) {
	h := harness(t, "42-bare_canary_token_that_must_stay_at_home")
	h.Refresher = nil
	adaptertest.Run(t, h)
}

// platform knows the account 42 under any bare token of its own, and under signed.
func platform(t *testing.T) (*sim.Core, *simx.Server) {
	t.Helper()
	core := sim.NewCore(0)
	server := simx.New(core, simx.Options{Limits: &map[string]simx.Limit{}, AnyAccount: true})
	require.NoError(t, server.AddApp(simx.App{Name: "app", ConsumerKey: "ckey-canary", ConsumerSecret: "c/sec ret", OwnerID: account}))
	require.NoError(t, server.AddUser(simx.User{ID: account, Username: "nyx"}))
	require.NoError(t, server.GrantOAuth1("app", account, "42-token-canary", "t+secret"))
	return core, server
}

func world(t *testing.T) (*sim.Core, http.Handler) {
	core, server := platform(t)
	return core, server
}

func harness(t *testing.T, secret string) adaptertest.Harness {
	const create = "POST /2/tweets"
	return adaptertest.Harness{
		Secret: secret, Target: account, World: world, Schema: func(*http.Request, []byte) error { return nil },
		New: func(baseURL string, client adapter.Doer) (autopost.Adapter, error) {
			return twitter.New(twitter.Config{BaseURL: baseURL, Client: client})
		},
		Refresher: func(baseURL string, client adapter.Doer) autopost.Refresher {
			return twitter.NewRefresher(baseURL, client)
		},
		NoMarkup: true, BadSettings: `{"made_with_ai":"yes"}`,
		Lookup: true, Longest: strings.Repeat("語", 134) + "ab",
		TextMethod: create, AlbumMethod: create,
		Album: []autopost.MediaKind{autopost.MediaImage, autopost.MediaImage, autopost.MediaImage},
		MediaMethods: map[autopost.MediaKind]string{
			autopost.MediaImage: create, autopost.MediaVideo: create, autopost.MediaAnimation: create,
		},
		FileKinds: map[autopost.MediaKind]string{
			autopost.MediaImage: "tweet_image", autopost.MediaVideo: "tweet_video", autopost.MediaAnimation: "tweet_video",
		},
		Expired:     row(400, "media-invalid", "Your media IDs are invalid.", autopost.Permanent, autopost.ScopeDelivery, "media_expired"),
		Definite5xx: row(409, "conflict", "Conflict", autopost.Transient, autopost.ScopeDelivery, "x_conflict"),
		Rows:        rows(),
		Acts:        map[autopost.ActKind]string{autopost.ActDelete: "DELETE /2/tweets/{id}"},
		ActRows: map[autopost.ActKind][]adaptertest.Row{autopost.ActDelete: {
			{Status: 404, Code: "not-found", Description: "Not Found"},
			after(900_000, row(429, "rate-limited", "Too Many Requests", autopost.Transient, autopost.ScopeChannel, "x_429")),
			after(3_600_000, row(402, "credits-depleted", "credits depleted", autopost.Transient, autopost.ScopePlatform, "x_no_credits")),
			row(401, "unauthorized", "Unauthorized", autopost.Permanent, autopost.ScopeChannel, "x_unauthorized"),
			row(503, "", "Service Unavailable", autopost.Transient, autopost.ScopePlatform, "x_5xx"),
		}},
	}
}

func row(status int, code, detail string, category autopost.Category, scope autopost.Scope, want string) adaptertest.Row {
	return adaptertest.Row{
		Status: status, Code: code, Description: detail,
		Want: adaptertest.Class{Category: category, Scope: scope, Code: want},
	}
}

func after(ms int64, r adaptertest.Row) adaptertest.Row {
	r.Want.RetryAfterMS = ms
	return r
}

func rows() []adaptertest.Row {
	const permanent, transient = autopost.Permanent, autopost.Transient
	const delivery, channel, platform = autopost.ScopeDelivery, autopost.ScopeChannel, autopost.ScopePlatform
	return []adaptertest.Row{
		after(900_000, row(429, "rate-limited", "Too Many Requests", transient, channel, "x_429")),
		after(900_000, row(429, "code-88", "Rate limit exceeded", transient, channel, "x_429")),
		after(900_000, row(429, "rate-limit-exceeded", "Too Many Requests", transient, channel, "x_429")),
		after(21_600_000, row(429, "usage-capped", "Usage cap exceeded: Monthly product cap", transient, platform, "x_usage_capped")),
		after(3_600_000, row(402, "credits", "Your enrolled account [1] does not have any credits to fulfill this request.", transient, platform, "x_no_credits")),
		after(3_600_000, row(402, "credits-depleted", "credits depleted", transient, platform, "x_no_credits")),
		row(403, "duplicate", "You are not allowed to create a Tweet with duplicate content.", permanent, delivery, "x_duplicate"),
		row(403, "code-187", "Status is a duplicate.", permanent, delivery, "x_duplicate"),
		row(403, "user-suspended", "No.", permanent, channel, "x_suspended"),
		row(403, "code-64", "Your account is suspended and is not permitted to access this feature.", permanent, channel, "x_suspended"),
		row(403, "code-326", "Log in to see why.", permanent, channel, "x_suspended"),
		row(403, "client-forbidden", "You must use keys and tokens from an App that is attached to a Project.", permanent, channel, "x_app_forbidden"),
		row(403, "unsupported-authentication", "Forbidden for this endpoint.", permanent, channel, "x_app_forbidden"),
		row(403, "oauth1-permissions", "Your client app is not configured with the appropriate permissions.", permanent, channel, "x_app_forbidden"),
		row(403, "cashtags", "Posts may contain a maximum of one cashtag.", permanent, delivery, "x_rejected"),
		row(403, "reply-forbidden", "Reply to this conversation is not allowed.", permanent, delivery, "x_rejected"),
		row(403, "invalid-url", "The Tweet contains an invalid URL.", permanent, delivery, "x_rejected"),
		row(403, "not-permitted", "You are not permitted to perform this action.", permanent, delivery, "x_rejected"),
		row(403, "video-too-long", "This user is not allowed to post a video longer than 2 minutes.", permanent, delivery, "x_rejected"),
		row(403, "not-permitted", "Something new.", permanent, channel, "x_403"),
		row(401, "unauthorized", "Unauthorized", permanent, channel, "x_unauthorized"),
		row(401, "code-32", "Could not authenticate you.", permanent, channel, "x_unauthorized"),
		row(401, "code-89", "Invalid or expired token.", permanent, channel, "x_unauthorized"),
		row(400, "", "Something is wrong with the request.", permanent, delivery, "validation_failed"),
		row(409, "conflict", "Conflict", transient, delivery, "x_conflict"),
		row(413, "too-large", "Payload Too Large", permanent, delivery, "media_too_large"),
		row(418, "", "something new", permanent, delivery, "x_418"),
	}
}

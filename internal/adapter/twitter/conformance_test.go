package twitter_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/adapter"
	"autopost/internal/adapter/adaptertest"
	"autopost/internal/adapter/adaptertest/published"
	"autopost/internal/adapter/twitter"
	"autopost/internal/sim"
	simx "autopost/internal/sim/twitter"
)

const (
	account = "42"
	signed  = `{"consumer_key":"ckey-canary","consumer_secret":"c/sec ret","access_token":"42-token-canary","access_token_secret":"t+secret"}`
)

func TestConformance(t *testing.T) { adaptertest.Run(t, harness(t, signed)) }

func TestConformanceWithABareToken(t *testing.T) {
	h := harness(t, "42-bare_canary_token_that_must_stay_at_home")
	h.Refresher = nil
	adaptertest.Run(t, h)
}

// platform is a simulator with account 42, for any bare token of that account and for signed.
func platform(t *testing.T) (*sim.Core, *simx.Server) {
	t.Helper()
	core := sim.NewCore(0)
	server := simx.New(core, simx.Options{Limits: &map[string]simx.Limit{}, AnyAccount: true})
	require.NoError(t, server.AddApp(simx.App{Name: "app", ConsumerKey: "ckey-canary", ConsumerSecret: "c/sec ret", OwnerID: account}))
	require.NoError(t, server.AddUser(simx.User{ID: account, Username: "nyx"}))
	require.NoError(t, server.GrantOAuth1("app", account, "42-token-canary", "t+secret"))
	return core, server
}

// newPlatform returns a simulator for the suite.
func newPlatform(t *testing.T) (*sim.Core, http.Handler) {
	core, server := platform(t)
	return core, server
}

func harness(t *testing.T, secret string) adaptertest.Harness {
	const create = "POST /2/tweets"
	return adaptertest.Harness{
		Secret: secret, Target: account, Simulator: newPlatform, Schema: published.X(t),
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
		Expired:     row(400, "media-invalid", "Your media IDs are invalid.", adaptertest.Delivery(autopost.Permanent, "media_expired")),
		Definite5xx: row(409, "conflict", "Conflict", adaptertest.Delivery(autopost.Transient, "x_conflict")),
		Rows:        rows(),
		Changes:     map[autopost.ChangeKind]string{autopost.ChangeDelete: "DELETE /2/tweets/{id}"},
		ChangeRows: map[autopost.ChangeKind][]adaptertest.Row{autopost.ChangeDelete: {
			{Status: 404, Code: "not-found", Description: "Not Found"},
			after(900_000, row(429, "rate-limited", "Too Many Requests", adaptertest.Channel(autopost.Transient, "x_429"))),
			after(3_600_000, row(402, "credits-depleted", "credits depleted", adaptertest.Group(autopost.Transient, "x_no_credits"))),
			row(401, "unauthorized", "Unauthorized", adaptertest.Channel(autopost.Permanent, "x_unauthorized")),
			row(503, "", "Service Unavailable", adaptertest.Group(autopost.Transient, "x_5xx")),
		}},
	}
}

func row(status int, code, detail string, want adaptertest.Class) adaptertest.Row {
	return adaptertest.Row{
		Status: status, Code: code, Description: detail,
		Want: want,
	}
}

func after(ms int64, r adaptertest.Row) adaptertest.Row {
	r.Want.RetryAfterMS = ms
	return r
}

func rows() []adaptertest.Row {
	const permanent, transient = autopost.Permanent, autopost.Transient
	return []adaptertest.Row{
		after(900_000, row(429, "rate-limited", "Too Many Requests", adaptertest.Channel(transient, "x_429"))),
		after(900_000, row(429, "code-88", "Rate limit exceeded", adaptertest.Channel(transient, "x_429"))),
		after(900_000, row(429, "rate-limit-exceeded", "Too Many Requests", adaptertest.Channel(transient, "x_429"))),
		after(21_600_000, row(429, "usage-capped", "Usage cap exceeded: Monthly product cap", adaptertest.Group(transient, "x_usage_capped"))),
		after(3_600_000, row(402, "credits", "Your enrolled account [1] does not have any credits to fulfill this request.", adaptertest.Group(transient, "x_no_credits"))),
		after(3_600_000, row(402, "credits-depleted", "credits depleted", adaptertest.Group(transient, "x_no_credits"))),
		row(403, "duplicate", "You are not allowed to create a Tweet with duplicate content.", adaptertest.Delivery(permanent, "x_duplicate")),
		row(403, "code-187", "Status is a duplicate.", adaptertest.Delivery(permanent, "x_duplicate")),
		after(10_800_000, row(403, "daily-limit", "User is over daily status update limit.", adaptertest.Channel(transient, "x_daily_limit"))),
		after(7_200_000, row(403, "automated", "This request looks like it might be automated.", adaptertest.Channel(transient, "x_automated"))),
		after(3_600_000, row(403, "spend-cap", "Your enrolled account [1] has reached its billing cycle spend cap.", adaptertest.Group(transient, "x_no_credits"))),
		row(403, "user-suspended", "No.", adaptertest.Channel(permanent, "x_suspended")),
		row(403, "code-64", "Your account is suspended and is not permitted to access this feature.", adaptertest.Channel(permanent, "x_suspended")),
		row(403, "code-326", "Log in to see why.", adaptertest.Channel(permanent, "x_suspended")),
		row(403, "client-forbidden", "You must use keys and tokens from an App that is attached to a Project.", adaptertest.Channel(permanent, "x_app_forbidden")),
		row(403, "unsupported-authentication", "Forbidden for this endpoint.", adaptertest.Channel(permanent, "x_app_forbidden")),
		row(403, "oauth1-permissions", "Your client app is not configured with the appropriate permissions.", adaptertest.Channel(permanent, "x_app_forbidden")),
		row(403, "cashtags", "Posts may contain a maximum of one cashtag.", adaptertest.Delivery(permanent, "x_rejected")),
		row(403, "reply-forbidden", "Reply to this conversation is not allowed.", adaptertest.Delivery(permanent, "x_rejected")),
		row(403, "invalid-url", "The Tweet contains an invalid URL.", adaptertest.Delivery(permanent, "x_rejected")),
		row(403, "not-permitted", "You are not permitted to perform this action.", adaptertest.Delivery(permanent, "x_rejected")),
		row(403, "video-too-long", "This user is not allowed to post a video longer than 2 minutes.", adaptertest.Delivery(permanent, "x_rejected")),
		row(403, "not-permitted", "Something new.", adaptertest.Channel(permanent, "x_403")),
		row(401, "unauthorized", "Unauthorized", adaptertest.Channel(permanent, "x_unauthorized")),
		row(401, "code-32", "Could not authenticate you.", adaptertest.Channel(permanent, "x_unauthorized")),
		row(401, "code-89", "Invalid or expired token.", adaptertest.Channel(permanent, "x_unauthorized")),
		row(400, "", "Something is wrong with the request.", adaptertest.Delivery(permanent, "validation_failed")),
		row(409, "conflict", "Conflict", adaptertest.Delivery(transient, "x_conflict")),
		row(413, "too-large", "Payload Too Large", adaptertest.Delivery(permanent, "media_too_large")),
		row(418, "", "something new", adaptertest.Delivery(permanent, "x_418")),
	}
}

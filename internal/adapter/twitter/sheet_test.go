package twitter_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/adapter/adaptertest"
	"autopost/internal/sim"
)

// provoke causes an error of the sheet's table by a fault of one call.
type provoke func(t *testing.T, fault sim.Fault) *autopost.Error

func posting(t *testing.T, fault sim.Fault) *autopost.Error {
	b := newBench(t)
	fault.Method = create
	b.fault(t, fault)
	return send(t, b.url, b.media, saying("news")).Error
}

func uploading(method string) provoke {
	return func(t *testing.T, fault sim.Fault) *autopost.Error {
		b := newBench(t)
		fault.Method = method
		b.fault(t, fault)
		return send(t, b.url, b.media, b.showing("a", autopost.MediaImage)).Error
	}
}

func spoiled(t *testing.T, _ sim.Fault) *autopost.Error {
	b := newBench(t)
	return send(t, b.url, &film{MediaAccess: b.media, size: 1 << 10, kind: "image/gif"}, b.showing("a", autopost.MediaAnimation)).Error
}

func renewing(t *testing.T, _ sim.Fault) *autopost.Error {
	_, server, refresher, secret := refreshers(t)
	server.Disconnect("42")
	_, failure := refresher.Refresh(t.Context(), secret)
	return failure
}

func answer(status int, code, description string) sim.Fault {
	return sim.Fault{Effect: sim.EffectStatus, Status: status, Code: code, Description: description}
}

// page is a proxy's page instead of X's answer.
func page(status int) sim.Fault { return sim.Fault{Effect: sim.EffectGarbage, Status: status} }

func TestErrorsAreClassifiedAsInTheSheet(t *testing.T) {
	rows := []struct {
		http, match string
		by          provoke
		faults      []sim.Fault
	}{
		{"429", "code 88", posting, []sim.Fault{answer(429, "code-88", "Rate limit exceeded"), answer(429, "rate-limited", "Too Many Requests"), answer(429, "rate-limit-exceeded", "")}},
		{"429", "`usage-capped`", posting, []sim.Fault{answer(429, "usage-capped", "Usage cap exceeded: Monthly product cap")}},
		{"402", "`credits`", posting, []sim.Fault{answer(402, "credits", ""), answer(402, "credits-depleted", "")}},
		{"403", "`SpendCapReached`", posting, []sim.Fault{answer(403, "spend-cap", ""), answer(402, "spend-cap", ""), answer(429, "spend-cap", ""), answer(403, "credits", "No."), answer(429, "credits", "No.")}},
		{"403", "`User is over daily", posting, []sim.Fault{answer(403, "daily-limit", ""), answer(403, "not-permitted", "User is over daily status update limit")}},
		{"403", "`looks like it might", posting, []sim.Fault{answer(403, "automated", "")}},
		{"4xx (not 413, 429), body not of X's form", "–", posting, []sim.Fault{page(400), page(401), page(403), page(404), page(407)}},
		{"4xx (not 413, 429), body not of X's form", "–", uploading(finalize), []sim.Fault{page(401), page(404)}},
		{"403", "`duplicate content`", posting, []sim.Fault{answer(403, "duplicate", ""), answer(403, "code-187", "Status is a duplicate.")}},
		{"403", "`user-suspended`", posting, []sim.Fault{answer(403, "user-suspended", "No."), answer(403, "code-64", "Your account is suspended"), answer(403, "code-326", "Log in")}},
		{"403", "`client-forbidden`", posting, []sim.Fault{answer(403, "client-forbidden", ""), answer(403, "unsupported-authentication", ""), answer(403, "oauth1-permissions", "")}},
		{"403", "`maximum of one cashtag`", posting, []sim.Fault{
			answer(403, "cashtags", "Posts may contain a maximum of one cashtag."), answer(403, "reply-forbidden", "Reply to this conversation is not allowed."),
			answer(403, "invalid-url", "The Tweet contains an invalid URL."), answer(403, "not-permitted", "You are not permitted to perform this action."),
			answer(403, "video-too-long", "This user is not allowed to post a video longer than 2 minutes."),
		}},
		{"401", "any", posting, []sim.Fault{answer(401, "unauthorized", ""), answer(401, "code-89", "Invalid or expired token.")}},
		{"400 on token refresh", "`invalid_request`", renewing, []sim.Fault{{}}},
		{"400", "`invalid-request`", posting, []sim.Fault{answer(400, "", "Something is wrong with the request.")}},
		{"404", "on append", uploading(appendPart), []sim.Fault{answer(404, "", "")}},
		{"404", "on append", uploading(finalize), []sim.Fault{answer(404, "", "")}},
		{"409", "–", posting, []sim.Fault{answer(409, "conflict", "")}},
		{"413", "–", uploading(appendPart), []sim.Fault{answer(413, "", "")}},
		{"media `failed`", "STATUS", spoiled, []sim.Fault{{}}},
		{"5xx, code 131/130", "–", uploading(finalize), []sim.Fault{answer(503, "code-130", ""), answer(500, "code-131", "")}},
		{"timeout after write", "–", posting, []sim.Fault{{Effect: sim.EffectReset}, answer(503, "", "")}},
	}
	table := adaptertest.ErrorTable(t, "x.md")
	met := map[int]bool{}
	for _, row := range rows {
		for _, fault := range row.faults {
			failure := row.by(t, fault)
			require.NotNil(t, failure, "%s %s", row.http, row.match)
			for n, cells := range table {
				if cells[0] != row.http || !strings.HasPrefix(cells[1], row.match) {
					continue
				}
				met[n] = true
				require.Contains(t, cells[2], string(failure.Category), "%v: %s", cells, failure)
				require.Contains(t, cells[3], string(failure.Scope), "%v: %s", cells, failure)
				require.Contains(t, cells[4], failure.Code, "%v: %s", cells, failure)
				require.Equal(t, strings.Contains(cells[2], "unknown") && !strings.Contains(cells[2], "reconcile"), !failure.Known, "%v: %s", cells, failure)
			}
		}
	}
	for n, cells := range table {
		require.True(t, met[n], "no case covers the row %v", cells)
	}
	t.Logf("%d of %d rows", len(met), len(table))
}

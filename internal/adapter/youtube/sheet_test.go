package youtube_test

import (
	"encoding/json"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/adapter/adaptertest"
	"autopost/internal/adapter/youtube"
	"autopost/internal/outbound"
	"autopost/internal/sim"
	simyoutube "autopost/internal/sim/youtube"
)

// provoke causes an error of the sheet's table and checks its class.
type provoke func(t *testing.T, status int, reason string, cells []string)

// requireClass compares a failure with the cells of its row.
func requireClass(t *testing.T, failure *autopost.Error, cells []string) {
	t.Helper()
	require.NotNil(t, failure, "%v", cells)
	require.True(t, failure.Known, "%v: %s", cells, failure)
	require.Contains(t, cells[2], string(failure.Category), "%v: %s", cells, failure)
	require.True(t, strings.HasPrefix(cells[3], string(failure.Scope)), "%v: %s", cells, failure)
}

// complete is a video with thumbnail, captions and a playlist.
func (b *bench) complete() autopost.Delivery {
	d := b.dressed()
	d.RenderMeta.Video.PlaylistID = "PLshow"
	d.RenderMeta.Steps = append(d.RenderMeta.Steps, autopost.Step{Name: "playlist", Aside: true})
	return d
}

// at fails one call of a video with all extras.
func at(method string) provoke {
	return func(t *testing.T, status int, reason string, cells []string) {
		t.Helper()
		b := newBench(t)
		b.fault(sim.Fault{Method: method, Effect: sim.EffectStatus, Status: status, Code: reason})
		requireClass(t, b.send(b.complete()).Error, cells)
	}
}

// warned fails a step after the video. The post succeeds with a warning.
func warned(method, step, want string) provoke {
	return func(t *testing.T, status int, reason string, cells []string) {
		t.Helper()
		b := newBench(t)
		b.fault(sim.Fault{Method: method, Effect: sim.EffectStatus, Status: status, Code: reason})
		o := b.send(b.complete())
		require.True(t, o.OK, "%v: %v", cells, o.Error)
		if want == "" {
			require.Empty(t, b.stored(o).Refused)
			return
		}
		require.Contains(t, b.stored(o).Refused[step], want)
	}
}

// revoked renews a revoked grant.
func revoked(t *testing.T, _ int, _ string, cells []string) {
	t.Helper()
	server := simyoutube.New(sim.NewCore(0), simyoutube.Options{})
	require.NoError(t, server.AddProject(simyoutube.Project{ID: "p", ClientID: "client", ClientSecret: "hush-hush-client"}))
	require.NoError(t, server.AddChannel(simyoutube.Channel{ID: channelID, Title: "Demo"}))
	refresh, err := server.Grant("p", channelID, simyoutube.ScopeAll)
	require.NoError(t, err)
	host := httptest.NewServer(server.Tokens())
	t.Cleanup(host.Close)
	client, err := outbound.Operator(outbound.OperatorConfig{})
	require.NoError(t, err)
	t.Cleanup(client.CloseIdleConnections)
	text, err := json.Marshal(map[string]string{"client_id": "client", "client_secret": "hush-hush-client", "refresh_token": refresh})
	require.NoError(t, err)
	server.Disconnect(channelID)
	_, failure := youtube.NewRefresher(host.URL, client).Refresh(t.Context(), autopost.NewSecret(string(text)))
	requireClass(t, failure, cells)
}

// dailyBucket fails the call as an exhausted bucket of uploads does.
func dailyBucket(t *testing.T, status int, reason string, cells []string) {
	t.Helper()
	b := newBench(t)
	b.fault(sim.Fault{Method: start, Effect: sim.EffectStatus, Status: status, Code: reason,
		Description: "Quota exceeded for quota metric 'Video Uploads' and limit 'Video Uploads per day' of service 'youtube.googleapis.com' for consumer 'project_number:1'."})
	failure := b.send(b.dressed()).Error
	requireClass(t, failure, cells)
	require.Equal(t, "yt_usage_capped", failure.Code, "the database waits for this code without spending attempts")
	require.GreaterOrEqual(t, failure.RetryAfterMS, time.Minute.Milliseconds())
}

// proxied answers with a proxy's page.
func proxied(t *testing.T, status int, _ string, cells []string) {
	t.Helper()
	b := newBench(t)
	b.fault(sim.Fault{Method: start, Effect: sim.EffectGarbage, Status: status})
	failure := b.send(b.dressed()).Error
	requireClass(t, failure, cells)
	require.Equal(t, "yt_gateway", failure.Code)
}

// expired fails the upload as an expired session does.
func expired(t *testing.T, status int, _ string, cells []string) {
	t.Helper()
	b := newBench(t)
	b.fault(sim.Fault{Method: bytesTo, Effect: sim.EffectStatus, Status: status})
	requireClass(t, b.send(b.show(300*kib)).Error, cells)
}

func TestErrorsAreClassifiedAsInTheSheet(t *testing.T) {
	// special are by the beginning of the row's reasons. All other errors happen at the start of a session.
	special := map[string]provoke{
		"invalid_grant":        revoked,
		"uploadRateLimit":      at(thumbnails),
		"invalidImage":         warned(thumbnails, "thumbnail", "yt_i"),
		"thumbnail `forbidden": warned(thumbnails, "thumbnail", "yt_forbidden"),
		"captionExists":        warned(captions, "captions", ""),
		"videoNotFound":        at(captions),
		"rateLimitExceeded (w": dailyBucket,
		"videoAlreadyIn":       warned(playlists, "playlist", ""),
		"aborted":              at(playlists),
		"(no JSON":             proxied,
		"upload session":       expired,
	}
	reasons := regexp.MustCompile(`[A-Za-z_]{6,}`)
	statuses := regexp.MustCompile(`[45][0-9x]{2}`)
	rows, cases := 0, 0
	for _, cells := range adaptertest.ErrorTable(t, "youtube.md") {
		rows++
		by := at(start)
		named := reasons.FindAllString(regexp.MustCompile(`\[.*?\]|\(.*?\)|Invalid Credentials|thumbnail|upload session`).ReplaceAllString(cells[1], ""), -1)
		for beginning, of := range special {
			if strings.HasPrefix(cells[1], beginning) {
				by = of
			}
		}
		if len(named) == 0 {
			named = []string{""}
		}
		for _, reason := range named {
			for _, status := range statuses.FindAllString(cells[0], -1) {
				code, err := strconv.Atoi(strings.ReplaceAll(status, "x", "0"))
				require.NoError(t, err)
				cases++
				by(t, code, whole(reason), cells)
			}
		}
	}
	t.Logf("%d rows by %d cases", rows, cases)
}

// whole expands a reason that the sheet abbreviates ("authenticatedUserAccountSuspended/Closed").
func whole(reason string) string {
	if of, short := map[string]string{"Closed": "authenticatedUserAccountClosed"}[reason]; short {
		return of
	}
	return reason
}

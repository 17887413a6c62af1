package youtube_test

import (
	"encoding/json"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/adapter/adaptertest"
	"autopost/internal/adapter/youtube"
	"autopost/internal/outbound"
	"autopost/internal/sim"
	simyoutube "autopost/internal/sim/youtube"
)

// met brings about a row of the sheet's table of errors, for one of its statuses and
// reasons, and checks what came of it.
type met func(t *testing.T, status int, reason string, cells []string)

// judged checks a failure against the cells of its row.
func judged(t *testing.T, failure *autopost.Error, cells []string) {
	t.Helper()
	require.NotNil(t, failure, "%v", cells)
	require.True(t, failure.Known, "%v: %s", cells, failure)
	require.Contains(t, cells[2], string(failure.Category), "%v: %s", cells, failure)
	require.True(t, strings.HasPrefix(cells[3], string(failure.Scope)), "%v: %s", cells, failure)
}

// at meets a row at a call of a video that has all extras.
func at(method string) met {
	return func(t *testing.T, status int, reason string, cells []string) {
		t.Helper()
		b := newBench(t)
		b.fault(sim.Fault{Method: method, Effect: sim.EffectStatus, Status: status, Code: reason})
		judged(t, b.send(b.dressed()).Error, cells)
	}
}

// warned meets a row whose step alone fails: the video stands.
func warned(method, step, want string) met {
	return func(t *testing.T, status int, reason string, cells []string) {
		t.Helper()
		b := newBench(t)
		b.fault(sim.Fault{Method: method, Effect: sim.EffectStatus, Status: status, Code: reason})
		o := b.send(b.dressed())
		require.True(t, o.OK, "%v: %v", cells, o.Error)
		if want == "" {
			require.Empty(t, b.told(o).Refused)
			return
		}
		require.Contains(t, b.told(o).Refused[step], want)
	}
}

// forsaken meets a grant that is dead.
func forsaken(t *testing.T, _ int, _ string, cells []string) {
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
	judged(t, failure, cells)
}

// expired meets a session that nobody knows any more.
func expired(t *testing.T, status int, _ string, cells []string) {
	t.Helper()
	b := newBench(t)
	b.fault(sim.Fault{Method: bytesTo, Effect: sim.EffectStatus, Status: status})
	judged(t, b.send(b.show(300*kib)).Error, cells)
}

// Every row of the sheet's table of errors, with each of its statuses and reasons, comes
// to what the sheet says.
func TestTheSheetsErrorsAreAllMet(t *testing.T) {
	// By the beginning of the row's reasons; the others are met where a session begins.
	special := map[string]met{
		"invalid_grant":        forsaken,
		"uploadRateLimit":      at(thumbnails),
		"invalidImage":         warned(thumbnails, "thumbnail", "yt_i"),
		"thumbnail `forbidden": warned(thumbnails, "thumbnail", "yt_forbidden"),
		"captionExists":        warned(captions, "captions", ""),
		"videoNotFound":        at(captions),
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

// whole is a reason that the sheet abbreviates ("authenticatedUserAccountSuspended/Closed").
func whole(reason string) string {
	if of, short := map[string]string{"Closed": "authenticatedUserAccountClosed"}[reason]; short {
		return of
	}
	return reason
}

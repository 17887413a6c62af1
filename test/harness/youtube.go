package harness

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/stretchr/testify/require"

	"autopost/internal/sim/youtube"
)

// YouTube is the platform of YouTubeChannel.
const YouTube = youtube.Platform

// youtubeProject is the Google project of all channels.
var youtubeProject = youtube.Project{ID: "harness", ClientID: "harness-client", ClientSecret: "canary-google-client-secret"}

// YouTubeChannel makes a channel with its own credential, because a grant is valid for one channel.
// It returns the platform's id. The grant is in a file that each attempt reads.
func (h *Harness) YouTubeChannel(workspace, id string) string {
	h.t.Helper()
	channel := "UCharness-" + id
	require.NoError(h.t, h.World.YouTube.AddProject(youtubeProject))
	require.NoError(h.t, h.World.YouTube.AddChannel(youtube.Channel{ID: channel, Title: id}))
	refresh, err := h.World.YouTube.Grant(youtubeProject.ID, channel, youtube.ScopeAll+" "+youtube.ScopeUpload)
	require.NoError(h.t, err)
	secret, err := json.Marshal(map[string]string{
		"client_id": youtubeProject.ClientID, "client_secret": youtubeProject.ClientSecret, "refresh_token": refresh,
	})
	require.NoError(h.t, err)
	file := filepath.Join(h.dir, fmt.Sprintf("%s.%s.json", workspace, id))
	require.NoError(h.t, os.WriteFile(file, secret, 0o600))
	h.secrets = append(h.secrets, refresh, youtubeProject.ClientSecret)
	h.Exec(`insert into autopost.credential_bindings (workspace_id, auth_ref, platform, secret_ref) values ($1, $2, 'youtube', 'file:' || $3)`, workspace, id, file)
	h.Exec(`insert into autopost.channels (workspace_id, channel_id, platform, target_id, auth_ref, rate_group, rate_rps)
		values ($1, $2, 'youtube', $3, $2, 'google-project', 0)`, workspace, id, channel)
	return channel
}

package config_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/config"
)

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	c, err := config.Load([]string{"PATH=/bin", "AUTOPOST_UNKNOWN=1", "AUTOPOST_LOG=", "DATABASE_URL="})
	require.NoError(t, err)
	data, err := filepath.Abs("autopost-data")
	require.NoError(t, err)
	require.True(t, c.DatabaseURL.IsZero())
	require.True(t, c.ListenURL.IsZero())
	require.Equal(t, data, c.DataDir)
	require.Equal(t, "file://"+data+"/media?create_dir=true&no_tmp_dir=true", c.BlobURL)
	require.Equal(t, "127.0.0.1:8080", c.Listen)
	require.Equal(t, "https://api.telegram.org", c.TelegramAPIURL)
	require.Equal(t, "https://platform-api2.max.ru", c.MAXAPIURL)
	require.Equal(t, "https://api.x.com", c.XAPIURL)
	require.Equal(t, "https://www.googleapis.com", c.YouTubeAPIURL)
	require.Equal(t, "https://oauth2.googleapis.com/token", c.GoogleTokenURL)
	require.Equal(t, slog.LevelInfo, c.LogLevel)
	require.True(t, c.Migrate)
	require.Equal(t, 100, c.PullChunkSize)
	require.Equal(t, 100, c.DispatcherLimitPerWorkspace)
	require.Equal(t, 512, c.DispatcherSenders)
	require.Equal(t, int64(10485760), c.MaxMediaBytesImage)
	require.Equal(t, int64(52428800), c.MaxMediaBytesVideo)
	require.Equal(t, 30*time.Second, c.DownloadTimeout)
	require.Equal(t, 300*time.Second, c.SendingLease)
	require.Equal(t, 300*time.Second, c.ClaimedLease)
	require.Equal(t, time.Minute, c.MonitorInterval)
	require.Equal(t, time.Minute, c.AdapterTimeout)
	require.Empty(t, c.OutboundAllow)
	require.Empty(t, c.Settings())
	for _, v := range config.Variables() {
		require.False(t, c.Explicit(v.Name), v.Name)
		require.NotEmpty(t, v.Meaning, v.Name)
		require.NotEmpty(t, v.Unit, v.Name)
		require.NotEmpty(t, v.Danger, v.Name)
	}
}

func TestEnvironmentWinsOverFile(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]string{
		"yaml":  write(t, "a.yaml", "DATABASE_URL: postgres://u:p@h/d\nPULL_CHUNK_SIZE: 50\nAUTOPOST_OUTBOUND_ALLOW: [10.0.0.0/8, 127.0.0.1]\nAUTOPOST_LOG:\n"),
		"lines": write(t, "a.env", "# a comment\nDATABASE_URL='postgres://u:p@h/d'\n\nexport PULL_CHUNK_SIZE=\"50\"\nAUTOPOST_OUTBOUND_ALLOW = 10.0.0.0/8, 127.0.0.1\n"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := config.Load([]string{"AUTOPOST_CONFIG=" + path, "PULL_CHUNK_SIZE=70", "SENDING_LEASE_SECONDS=120"})
			require.NoError(t, err)
			require.Equal(t, "postgres://u:p@h/d", c.DatabaseURL.Reveal())
			require.Equal(t, c.DatabaseURL, c.ListenURL)
			require.Equal(t, c.ListenURL, c.CoordinatorURL)
			require.Equal(t, 70, c.PullChunkSize)
			require.Equal(t, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("127.0.0.1/32")}, c.OutboundAllow)
			require.True(t, c.Explicit("DATABASE_URL"))
			require.False(t, c.Explicit("AUTOPOST_LOG"))
			require.Equal(t, map[string]any{"sending_lease_seconds": 120}, c.Settings())
		})
	}
}

func TestWrongValuesAreRejected(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ setting, want string }{
		{"DATABASE_URL=mysql://root:hunter2@h/d", "postgres://user:password@host"},
		{"DATABASE_URL=postgres://u:hunter2%zz@h/d", "percent-encode"},
		{"DATABASE_URL=hunter2", "must be a connection string"},
		{"AUTOPOST_LISTEN_URL=postgres://u:hunter2@h/d", "set together with DATABASE_URL"},
		{"AUTOPOST_COORDINATOR_URL=postgres://u:hunter2@h/d", "set together with DATABASE_URL"},
		{"AUTOPOST_LISTEN=8080", "like 127.0.0.1:8080"},
		{"AUTOPOST_METRICS_LISTEN=localhost:http", "like 127.0.0.1:8080"},
		{"AUTOPOST_BLOB_URL=ftp://x", "file, s3, gs or azblob"},
		{"AUTOPOST_BLOB_URL=file://relative/path", "three slashes"},
		{"AUTOPOST_BLOB_URL=folder", "must be a URL"},
		{"AUTOPOST_TELEGRAM_API_URL=api.telegram.org", "must be a base URL"},
		{"AUTOPOST_MAX_API_URL=https://u:hunter2@h/?a=b", "must be a base URL"},
		{"AUTOPOST_OUTBOUND_ALLOW=10.0.0.0/8,all", `must list networks, got "all"`},
		{"AUTOPOST_LOG=loud", "must be debug, info, warn or error"},
		{"AUTOPOST_MIGRATE=no", "must be auto or never"},
		{"PULL_CHUNK_SIZE=49", "from 50 to 200"},
		{"PULL_CHUNK_SIZE=many", "from 50 to 200"},
		{"DISPATCHER_LIMIT_PER_WORKSPACE=1001", "from 1 to 1000"},
		{"DISPATCHER_SENDERS=0", "from 1 to 10000"},
		{"MAX_MEDIA_BYTES_IMAGE=-1", "whole number"},
		{"DOWNLOAD_TIMEOUT_MS=30s", "whole number"},
		{"SENDING_LEASE_SECONDS=0", "whole number"},
		{"MONITOR_INTERVAL_SECONDS=3601", "from 1 to 3600"},
		{"ADAPTER_TIMEOUT_MS=285001", "at most 285000"},
	} {
		t.Run(c.setting, func(t *testing.T) {
			t.Parallel()
			name, _, _ := strings.Cut(c.setting, "=")
			_, err := config.Load([]string{c.setting})
			require.ErrorContains(t, err, name+" must ")
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "hunter2")
		})
	}
}

func TestAllWrongVariablesAreReported(t *testing.T) {
	t.Parallel()
	_, err := config.Load([]string{"PULL_CHUNK_SIZE=0", "AUTOPOST_LOG=loud"})
	require.ErrorContains(t, err, "PULL_CHUNK_SIZE")
	require.ErrorContains(t, err, "AUTOPOST_LOG")
}

func TestAdapterTimeoutFitsTheLease(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		lease, timeout string
		want           time.Duration
	}{
		{"300", "285000", 285 * time.Second},
		{"60", "45000", 45 * time.Second},
		{"60", "45001", 0},
		{"59", "29500", 29500 * time.Millisecond},
		{"59", "29501", 0},
		{"2", "1000", time.Second},
		{"2", "", time.Second},
		{"60", "", 45 * time.Second},
		{"75", "", time.Minute},
	} {
		got, err := config.Load([]string{"SENDING_LEASE_SECONDS=" + c.lease, "ADAPTER_TIMEOUT_MS=" + c.timeout})
		if c.want == 0 {
			require.ErrorContains(t, err, "ADAPTER_TIMEOUT_MS", c)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.want, got.AdapterTimeout, c)
	}
	// The lease may come from the database.
	fallback, err := config.Load(nil)
	require.NoError(t, err)
	got, err := fallback.UnderLease(20 * time.Second)
	require.NoError(t, err)
	require.Equal(t, 10*time.Second, got.AdapterTimeout)
	explicit, err := config.Load([]string{"ADAPTER_TIMEOUT_MS=60000"})
	require.NoError(t, err)
	_, err = explicit.UnderLease(20 * time.Second)
	require.ErrorContains(t, err, "ADAPTER_TIMEOUT_MS must be at most 10000 with SENDING_LEASE_SECONDS=20, got 60000")
}

func TestFileIsReadStrictly(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ path, want string }{
		"misspelt":       {write(t, "a.yaml", "PULL_CHUNKSIZE: 50\n"), "PULL_CHUNKSIZE must be a variable"},
		"misspelt, .env": {write(t, "b", "PATH=/bin\n"), "PATH must be a variable"},
		"another file":   {write(t, "c", "AUTOPOST_CONFIG=/etc/other\n"), "AUTOPOST_CONFIG must be a variable"},
		"not a mapping":  {write(t, "d.yaml", "- DATABASE_URL\n"), "d.yaml"},
		"not a line":     {write(t, "e", "hello\n"), "line 1"},
		"absent":         {"/does/not/exist", "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := config.Load([]string{"AUTOPOST_CONFIG=" + c.path})
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, "AUTOPOST_CONFIG")
		})
	}
}

func TestPasswordsDoNotPrint(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"postgres://u:hunter2@h:5432/d",
		"postgres://u@h/d?password=hunter2&sslpassword=hunter2",
		"host=h user=u password=hunter2 dbname=d",
		`host=h password = 'hunter2 and \' hunter2' user=u`,
		"password=hunter2",
		"sslpassword='hunter2",
	} {
		c, err := config.Load([]string{"DATABASE_URL=" + text})
		require.NoError(t, err)
		require.Equal(t, text, c.DatabaseURL.Reveal())
		encoded, err := json.Marshal(c)
		require.NoError(t, err)
		var log strings.Builder
		slog.New(slog.NewTextHandler(&log, nil)).Info("start", "database", c.DatabaseURL)
		for _, printed := range []string{fmt.Sprint(c), fmt.Sprintf("%+v %#v", c, c), string(encoded), log.String()} {
			require.NotContains(t, printed, "hunter2", text)
		}
	}
	c, err := config.Load([]string{"DATABASE_URL=postgres://u:hunter2@h:5432/d"})
	require.NoError(t, err)
	require.Equal(t, "postgres://u:xxxxx@h:5432/d", c.DatabaseURL.String())
}

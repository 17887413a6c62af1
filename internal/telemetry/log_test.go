package telemetry

import (
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCredentialsAreRedacted(t *testing.T) {
	t.Parallel()
	const secret = "AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw"
	type request struct{ URL string }
	for name, log := range map[string]func(*slog.Logger){
		"key":                func(l *slog.Logger) { l.Info("m", "token", secret) },
		"key of a family":    func(l *slog.Logger) { l.Info("m", "X-Max-Bot-Api-Secret", secret) },
		"header":             func(l *slog.Logger) { l.Info("m", "Authorization", secret) },
		"group":              func(l *slog.Logger) { l.Info("m", slog.Group("secret", "value", secret)) },
		"with":               func(l *slog.Logger) { l.With("password", secret).Info("m") },
		"with group":         func(l *slog.Logger) { l.WithGroup("api_key").Info("m", "value", secret) },
		"telegram URL":       func(l *slog.Logger) { l.Info("m", "url", "https://api.telegram.org/bot12345:"+secret+"/sendMessage") },
		"telegram file":      func(l *slog.Logger) { l.Info("https://api.telegram.org/file/bot12345%3A" + secret + "/a.jpg") },
		"error":              func(l *slog.Logger) { l.Info("m", "err", errors.New("dial postgres://u:"+secret+"@h/d: refused")) },
		"struct":             func(l *slog.Logger) { l.Info("m", "req", request{"postgres://u:" + secret + "@h/d"}) },
		"password with @":    func(l *slog.Logger) { l.Info("postgres://u:p@" + secret + "@h/d") },
		"keyword DSN":        func(l *slog.Logger) { l.Info("m", "dsn", "host=h password="+secret+" user=u") },
		"quoted keyword DSN": func(l *slog.Logger) { l.Info("m", "dsn", "host=h password='a "+secret+"' user=u") },
		"query":              func(l *slog.Logger) { l.Info("m", "url", "https://h/?access_token="+secret+"&v=1") },
		"bearer":             func(l *slog.Logger) { l.Info("sent Bearer " + secret) },
	} {
		for _, terminal := range []bool{false, true} {
			var out strings.Builder
			log(newLogger(&out, slog.LevelInfo, terminal))
			require.NotContains(t, out.String(), secret, name)
			require.Contains(t, out.String(), redacted, name)
		}
	}
}

func TestOtherValuesAreNotRedacted(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	NewLogger(&out, slog.LevelInfo).Info("delivery.attempted", "auth_ref", "main-bot", "url", "https://h:8080/bot/12:30", "attempt", 2)
	var line map[string]any
	require.NoError(t, json.Unmarshal([]byte(out.String()), &line), "without a terminal: one JSON object")
	require.Equal(t, "delivery.attempted", line["msg"])
	require.Equal(t, "main-bot", line["auth_ref"])
	require.Equal(t, "https://h:8080/bot/12:30", line["url"])
	require.Equal(t, 2.0, line["attempt"])
}

func TestLevel(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	for _, terminal := range []bool{false, true} {
		logger := newLogger(&out, slog.LevelWarn, terminal)
		logger.Info("hidden")
		logger.Warn("shown")
	}
	require.NotContains(t, out.String(), "hidden")
	require.Equal(t, 2, strings.Count(out.String(), "shown"))
}

func TestAFileGetsJSON(t *testing.T) {
	t.Parallel()
	file, err := os.Create(t.TempDir() + "/log")
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	NewLogger(file, slog.LevelInfo).Info("m")
	text, err := os.ReadFile(file.Name())
	require.NoError(t, err)
	require.True(t, json.Valid(text), string(text))
}

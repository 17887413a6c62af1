//go:build n8n

package n8n

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/port"
	"autopost/internal/testing/wait"
	"autopost/test/harness"
)

// The tokens are those of the bots of the harness.
const telegramToken, maxToken = "7001001:AAcanaryTelegramToken", "canary-max-token-f9LHod"

// server is an n8n with its own database on the PostgreSQL of the test.
type server struct {
	t      testing.TB
	h      *harness.Harness
	folder string
	// install is the folder of install.sh.
	install string
	// address is the host and port of webhooks; broker and cli are those of the task brokers.
	address, broker, cli string
	database             url.URL
	// login connects the workflows to autopost, as a member of autopost_caller.
	login url.URL
	cmd   *exec.Cmd
	log   *bytes.Buffer
	done  chan struct{}
}

// newServer prepares an n8n. It does not start it.
func newServer(t testing.TB, h *harness.Harness) *server {
	t.Helper()
	install := os.Getenv("AUTOPOST_N8N")
	require.NotEmpty(t, install, "run make test-n8n: it installs n8n and sets AUTOPOST_N8N")
	folder, err := os.MkdirTemp("", "autopost-n8n-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	_, variable := h.DatabaseProxy()
	address, err := url.Parse(strings.TrimPrefix(variable, "DATABASE_URL="))
	require.NoError(t, err)
	s := &server{t: t, h: h, folder: folder, install: install, address: port.Free(t), broker: port.Free(t), cli: port.Free(t), database: *address, login: *address}
	// The server of the test process ends with it, and this database too.
	s.database.Path += "_n8n"
	h.Exec(`create database ` + strings.TrimPrefix(s.database.Path, "/"))
	caller, err := url.Parse(h.URL("caller"))
	require.NoError(t, err)
	s.login.User = caller.User
	h.Exec(`insert into autopost.role_workspaces (role_name, workspace_id) values ($1, '*')`, caller.User.Username())
	t.Cleanup(s.kill)
	return s
}

// environment is complete: nothing of the caller's reaches n8n.
func (s *server) environment(broker string) []string {
	query := s.database.Query()
	password, _ := s.database.User.Password()
	_, brokerPort, _ := net.SplitHostPort(broker)
	_, listen, _ := net.SplitHostPort(s.address)
	return []string{
		"PATH=" + filepath.Dir(s.node()) + ":/usr/bin:/bin", "HOME=" + s.folder, "TMPDIR=" + s.folder, "LANG=C.UTF-8", "TZ=UTC",
		"DB_TYPE=postgresdb", "DB_POSTGRESDB_HOST=" + query.Get("host"), "DB_POSTGRESDB_PORT=" + query.Get("port"),
		"DB_POSTGRESDB_DATABASE=" + strings.TrimPrefix(s.database.Path, "/"), "DB_POSTGRESDB_USER=" + s.database.User.Username(), "DB_POSTGRESDB_PASSWORD=" + password,
		"N8N_USER_FOLDER=" + s.folder, "N8N_ENCRYPTION_KEY=test", "N8N_HOST=127.0.0.1", "N8N_LISTEN_ADDRESS=127.0.0.1", "N8N_PORT=" + listen,
		"N8N_RUNNERS_BROKER_LISTEN_ADDRESS=127.0.0.1", "N8N_RUNNERS_BROKER_PORT=" + brokerPort, "N8N_RUNNERS_TASK_TIMEOUT=120",
		"N8N_DIAGNOSTICS_ENABLED=false", "N8N_VERSION_NOTIFICATIONS_ENABLED=false", "N8N_TEMPLATES_ENABLED=false", "N8N_PERSONALIZATION_ENABLED=false",
		"N8N_HIRING_BANNER_ENABLED=false", "N8N_DYNAMIC_BANNERS_ENABLED=false", "N8N_COMMUNITY_PACKAGES_ENABLED=false", "N8N_UNVERIFIED_PACKAGES_ENABLED=false",
		"N8N_LICENSE_AUTO_RENEW_ENABLED=false", "N8N_SECURE_COOKIE=false", "N8N_PYTHON_ENABLED=false", "N8N_BLOCK_ENV_ACCESS_IN_NODE=true", "N8N_DEFAULT_BINARY_DATA_MODE=filesystem",
		// A published workflow is in effect at once.
		"N8N_USE_WORKFLOW_PUBLICATION_SERVICE=false", "N8N_DISABLED_MODULES=mcp-registry", "EXECUTIONS_DATA_PRUNE=false", "GENERIC_TIMEZONE=UTC",
	}
}

func (s *server) node() string { return filepath.Join(s.install, "node24") }

// command makes a command of n8n that kill ends with its children.
func (s *server) command(broker string, args ...string) *exec.Cmd {
	cmd := exec.Command(s.node(), append([]string{filepath.Join(s.install, "app/node_modules/n8n/bin/n8n")}, args...)...)
	cmd.Dir, cmd.Env = s.folder, s.environment(broker)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// run runs a command of n8n and returns what it printed.
func (s *server) run(args ...string) string {
	s.t.Helper()
	out, err := s.command(s.cli, args...).CombinedOutput()
	require.NoError(s.t, err, "n8n %v: %s", args, out)
	return string(out)
}

// credentials imports the credentials that the exports name.
func (s *server) credentials(apiKey string) {
	s.t.Helper()
	query := s.login.Query()
	password, _ := s.login.User.Password()
	header := func(id, name, value string) map[string]any {
		return map[string]any{"id": id, "name": name, "type": "httpHeaderAuth", "data": map[string]any{"name": "Authorization", "value": value}}
	}
	all := []map[string]any{
		{"id": "autopostPostgres", "name": "Autopost Postgres", "type": "postgres", "data": map[string]any{
			"host": query.Get("host"), "port": json.Number(query.Get("port")), "database": strings.TrimPrefix(s.login.Path, "/"), "user": s.login.User.Username(),
			"password": password, "ssl": "disable", "maxConnections": 5}},
		{"id": "autopostTelegram", "name": "Autopost Telegram bot", "type": "telegramApi", "data": map[string]any{"accessToken": telegramToken, "baseUrl": s.h.WorldURL + "/telegram"}},
		header("autopostMaxToken", "Autopost MAX token", maxToken), header("autopostApiKey01", "Autopost API key", "Bearer "+apiKey),
	}
	raw, err := json.Marshal(all)
	require.NoError(s.t, err)
	path := filepath.Join(s.folder, "credentials.json")
	require.NoError(s.t, os.WriteFile(path, raw, 0o600))
	require.Contains(s.t, s.run("import:credentials", "--input="+path), "Successfully imported")
	require.NoError(s.t, os.Remove(path))
}

// importAll imports workflows. Each replacement is a pair of texts. n8n must not warn about a workflow.
func (s *server) importAll(files map[string][]byte, replacements ...string) {
	s.t.Helper()
	dir := filepath.Join(s.folder, "import")
	require.NoError(s.t, os.MkdirAll(dir, 0o700))
	for name, text := range files {
		changed := strings.NewReplacer(replacements...).Replace(string(text))
		require.NoError(s.t, os.WriteFile(filepath.Join(dir, name), []byte(changed), 0o600))
	}
	out := s.run("import:workflow", "--separate", "--input="+dir)
	require.Contains(s.t, out, "Successfully imported")
	require.NotRegexp(s.t, `(?i)\b(warn|warning|error|could not)\b`, out)
}

// publishAll publishes workflows as the editor does, called ones first. Only a published workflow may be called.
func (s *server) publishAll(files map[string][]byte) {
	s.t.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(s.t, err)
	client := &http.Client{Jar: jar, Timeout: wait.Bound}
	ask := func(method, path string, body, into any) {
		raw, err := json.Marshal(body)
		require.NoError(s.t, err)
		request, err := http.NewRequestWithContext(s.t.Context(), method, "http://"+s.address+"/rest/"+path, bytes.NewReader(raw))
		require.NoError(s.t, err)
		request.Header.Set("Content-Type", "application/json")
		response, err := client.Do(request)
		require.NoError(s.t, err)
		defer func() { _ = response.Body.Close() }()
		answer, err := io.ReadAll(response.Body)
		require.NoError(s.t, err)
		require.Equal(s.t, http.StatusOK, response.StatusCode, "%s: %s", path, answer)
		require.NoError(s.t, json.Unmarshal(answer, into))
	}
	ask(http.MethodPost, "owner/setup", map[string]any{"email": "owner@example.org", "firstName": "O", "lastName": "P", "password": "Only4Tests!"}, &struct{}{})
	flows := map[string]workflow{}
	for _, text := range files {
		w := parse(s.t, text)
		flows[w.ID] = w
	}
	published := map[string]bool{}
	var publish func(id string)
	publish = func(id string) {
		if published[id] {
			return
		}
		published[id] = true
		for _, n := range flows[id].Nodes {
			if n.kind() == "executeWorkflow" {
				publish(n.text("workflowId.value"))
			}
		}
		var stored struct{ Data struct{ VersionID string } }
		ask(http.MethodGet, "workflows/"+id, nil, &stored)
		ask(http.MethodPost, "workflows/"+id+"/activate", map[string]any{"versionId": stored.Data.VersionID}, &struct{}{})
	}
	for _, id := range slices.Sorted(maps.Keys(flows)) {
		publish(id)
	}
}

// start runs the server until its webhooks are registered.
func (s *server) start() {
	s.t.Helper()
	s.cmd, s.log, s.done = s.command(s.broker, "start"), &bytes.Buffer{}, make(chan struct{})
	out, err := s.cmd.StdoutPipe()
	require.NoError(s.t, err)
	s.cmd.Stderr = s.cmd.Stdout
	require.NoError(s.t, s.cmd.Start())
	ready := make(chan struct{})
	go func() {
		defer close(s.done)
		open := ready
		for lines := bufio.NewScanner(out); lines.Scan(); {
			fmt.Fprintln(s.log, lines.Text())
			if open != nil && strings.Contains(lines.Text(), "Editor is now accessible") {
				close(open)
				open = nil
			}
		}
		_ = s.cmd.Wait()
	}()
	require.True(s.t, wait.Closed(ready), "n8n is not ready")
}

// kill ends the server and its task runner as a power failure does.
func (s *server) kill() {
	if s.cmd == nil {
		return
	}
	_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
	<-s.done
	s.cmd = nil
	if s.t.Failed() {
		s.t.Logf("the end of the log of n8n:\n%s", s.log.String()[max(0, s.log.Len()-4000):])
	}
}

// push posts to a webhook of the workflows.
func (s *server) post(path string, header map[string]string, body string) (int, map[string]any) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, "http://"+s.address+"/webhook/"+path, strings.NewReader(body))
	require.NoError(s.t, err)
	request.Header.Set("Content-Type", "application/json")
	for name, value := range header {
		request.Header.Set(name, value)
	}
	response, err := (&http.Client{Timeout: wait.Bound}).Do(request)
	require.NoError(s.t, err)
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	require.NoError(s.t, err)
	var answer map[string]any
	_ = json.Unmarshal(raw, &answer)
	return response.StatusCode, answer
}

// push sends a post to the push endpoint of 01_ingest.
func (s *server) push(secret, body string) (int, map[string]any) {
	s.t.Helper()
	return s.post("autopost/push", map[string]string{"Authorization": "Bearer " + secret}, body)
}

// took logs the duration of a part of the run.
func took(t testing.TB, what string, since time.Time) {
	t.Logf("%s: %s", what, time.Since(since).Round(time.Second))
}

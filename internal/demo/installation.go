package demo

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"autopost"
	"autopost/db"
	"autopost/internal/config"
	"autopost/internal/daemon"
	"autopost/internal/pg"
	"autopost/internal/pg/schema"
	"autopost/internal/sim/maxmessenger"
	"autopost/internal/sim/platforms"
	"autopost/internal/sim/telegram"
	"autopost/internal/telemetry"
)

const (
	workspaceID    = "demo"        // from db/seed.sql
	endpointSecret = "demo-secret" // db/seed.sql contains its hash; the endpoint is on a loopback port
	logSize        = 50_000
)

// installation is the database, the simulated platforms and the daemon of the demo.
type installation struct {
	dir    string
	keep   bool
	db     *daemon.Database
	sims   *platforms.Server
	simURL string
	client *http.Client
	daemon *daemon.Daemon
	store  *pg.Store

	simServer  *http.Server
	log        *os.File
	stopDaemon context.CancelFunc
	daemonDone chan struct{}
	daemonErr  error
}

// openInstallation starts everything, the daemon last. After an error it stops what it has
// started.
func openInstallation(ctx context.Context, o Options) (h *installation, err error) {
	given, err := config.Load(os.Environ())
	if err != nil {
		return nil, err
	}
	if o.Database && given.DatabaseURL.IsZero() {
		return nil, errors.New("DATABASE_URL must be set with --database: set it to an empty database, or leave the flag out")
	}
	h = &installation{client: &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 8}}}
	opened := h // a return of nil, err sets h to nil before the deferred call
	defer func() {
		if err != nil {
			err = errors.Join(err, opened.close(true))
		}
	}()
	if err := h.makeDir(given); err != nil {
		return nil, err
	}
	if err := h.startSimulators(ctx); err != nil {
		return nil, err
	}
	cfg, err := h.config(given, o, o.Listen)
	if err != nil {
		return nil, err
	}
	if h.db, err = daemon.CreateDatabase(ctx, cfg); err != nil {
		return nil, err
	}
	if o.Database {
		if err := h.requireEmpty(ctx); err != nil {
			return nil, err
		}
	}
	log := telemetry.NewLogger(h.log, cfg.LogLevel)
	h.daemon, err = daemon.New(ctx, cfg, h.db, nil, log)
	if errors.Is(err, syscall.EADDRINUSE) && !o.Fixed {
		if cfg, err = h.config(given, o, "127.0.0.1:0"); err == nil {
			h.daemon, err = daemon.New(ctx, cfg, h.db, nil, log)
		}
	}
	if err != nil {
		h.daemon = nil
		return nil, err
	}
	h.store = h.daemon.Store()
	if err := h.seed(ctx); err != nil {
		return nil, err
	}
	h.startDaemon(ctx)
	return h, nil
}

// makeDir uses the configured directory, or creates one. The user of PostgreSQL needs access.
func (h *installation) makeDir(given config.Config) (err error) {
	if given.Explicit("AUTOPOST_DATA_DIR") {
		h.dir, h.keep = given.DataDir, true
		err = os.MkdirAll(h.dir, 0o711)
	} else if h.dir, err = os.MkdirTemp("", "autopost-demo-"); err == nil {
		err = os.Chmod(h.dir, 0o711)
	}
	if err != nil {
		return err
	}
	log := filepath.Join(h.dir, "demo-daemon.log")
	if _, err := os.Stat(filepath.Join(h.dir, "pg")); err == nil {
		if _, err := os.Stat(log); errors.Is(err, fs.ErrNotExist) {
			return errForeignData(h.dir)
		}
	}
	h.log, err = os.OpenFile(log, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	return err
}

// errForeignData protects the data of another installation: the daemon of the demo would
// send its posts to the simulators.
func errForeignData(dir string) error {
	return fmt.Errorf("AUTOPOST_DATA_DIR must be empty or from an earlier demo, got %s with data of another installation: "+
		"unset it, or set a new directory", dir)
}

// requireEmpty protects the data of another installation in a configured database, as errForeignData does in a folder.
func (h *installation) requireEmpty(ctx context.Context) error {
	used, err := schema.InUse(ctx, h.db.CoordinatorURL)
	if err != nil {
		return h.db.Advise(err)
	}
	if used {
		return errors.New("DATABASE_URL must lead to a database without workspaces: create a new database for the demo")
	}
	return nil
}

// startSimulators serves the platforms, with the published limits of the real ones.
func (h *installation) startSimulators(ctx context.Context) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen for the simulators: %w", err)
	}
	h.sims = platforms.New(platforms.Options{LogSize: logSize})
	h.simURL = "http://" + listener.Addr().String()
	h.simServer = &http.Server{Handler: h.sims, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = h.simServer.Serve(listener) }() // ends with close; a failed server shows up in its callers
	return nil
}

// config returns the configuration of the daemon. From the environment it uses only the path
// of the PostgreSQL binaries and the log level, and the database if the options say so.
func (h *installation) config(given config.Config, o Options, listen string) (config.Config, error) {
	variables := []string{
		"AUTOPOST_DATA_DIR=" + h.dir,
		"AUTOPOST_PG_BIN=" + given.PostgresBin,
		"AUTOPOST_LISTEN=" + listen,
		"AUTOPOST_LOG=" + strings.ToLower(given.LogLevel.String()),
		"AUTOPOST_TELEGRAM_API_URL=" + h.simURL + "/telegram",
		"AUTOPOST_MAX_API_URL=" + h.simURL + "/max",
		"AUTOPOST_X_API_URL=" + h.simURL + "/x",
		"AUTOPOST_YOUTUBE_API_URL=" + h.simURL + "/youtube",
		"AUTOPOST_GOOGLE_TOKEN_URL=" + h.simURL + "/google/token",
		"AUTOPOST_OUTBOUND_ALLOW=127.0.0.0/8",
		"MONITOR_INTERVAL_SECONDS=2",
	}
	if o.Database {
		variables = append(variables, "DATABASE_URL="+given.DatabaseURL.Reveal(),
			"AUTOPOST_LISTEN_URL="+given.ListenURL.Reveal(), "AUTOPOST_COORDINATOR_URL="+given.CoordinatorURL.Reveal())
	}
	return config.Load(variables)
}

// seed inserts the rows and adds their bots and chats to the simulated platforms. The feed
// stays disabled until the load starts.
func (h *installation) seed(ctx context.Context) error {
	workspaces, err := h.store.ListWorkspaces(ctx)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(workspaces, func(w string) bool { return w != workspaceID }) {
		return errForeignData(h.dir)
	}
	if err := h.rows(ctx, db.Seed); err != nil {
		return fmt.Errorf("db/seed.sql: %w", err)
	}
	channels, err := h.store.ListChannels(ctx, workspaceID, 10_000)
	if err != nil {
		return err
	}
	var script strings.Builder
	fmt.Fprintf(&script, `update autopost.pull_sources set enabled = false, config_json = config_json || jsonb_build_object('url', %s)
		where workspace_id = %s and source_id = 'feed';`, sqlText(h.simURL+"/feeds/news.xml"), sqlText(workspaceID))
	known := map[string]bool{}
	for _, c := range channels {
		if err := h.addChat(c); err != nil {
			return err
		}
		if known[c.AuthRef] {
			continue
		}
		known[c.AuthRef] = true
		path, err := h.makeBot(c, len(known))
		if err != nil {
			return err
		}
		fmt.Fprintf(&script, "\nupdate autopost.credential_bindings set secret_ref = %s where workspace_id = %s and auth_ref = %s;",
			sqlText("file:"+path), sqlText(workspaceID), sqlText(c.AuthRef))
	}
	return h.rows(ctx, script.String())
}

// rows runs SQL as the owner, like an operator who configures by rows.
func (h *installation) rows(ctx context.Context, script string) error {
	return schema.Seed(ctx, h.db.CoordinatorURL, script)
}

func sqlText(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

func (h *installation) addChat(c pg.ChannelRow) error {
	id, err := strconv.ParseInt(c.TargetID, 10, 64)
	if err != nil {
		return fmt.Errorf("target of channel %s must be a chat id, got %q", c.ChannelID, c.TargetID)
	}
	title := c.ChannelID
	if c.Title != nil {
		title = *c.Title
	}
	if autopost.Platform(c.Platform) == autopost.MAX {
		h.sims.MAX.AddChat(maxmessenger.Chat{ID: id, Title: title})
	} else {
		h.sims.Telegram.AddChat(telegram.Chat{ID: id, Title: title})
	}
	return nil
}

// makeBot generates a credential, adds it to its platform and returns the path of its file.
func (h *installation) makeBot(c pg.ChannelRow, n int) (string, error) {
	token := rand.Text()
	var err error
	if autopost.Platform(c.Platform) == autopost.MAX {
		err = h.sims.MAX.AddBot(token)
	} else {
		token = fmt.Sprintf("%d:%s", 7_000_000_000+n, token)
		err = h.sims.Telegram.AddBot(token)
	}
	if err != nil {
		return "", err
	}
	path := filepath.Join(h.dir, "demo-credential-"+strconv.Itoa(n))
	return path, os.WriteFile(path, []byte(token), 0o600)
}

func (h *installation) startDaemon(ctx context.Context) {
	ctx, h.stopDaemon = context.WithCancel(ctx)
	h.daemonDone = make(chan struct{})
	go func() {
		defer close(h.daemonDone)
		h.daemonErr = h.daemon.Run(ctx)
	}()
}

// watch returns a context that ends with ctx or with the daemon.
func (h *installation) watch(ctx context.Context) context.Context {
	watched, cancel := context.WithCancel(ctx)
	go func() {
		<-h.daemonDone
		cancel()
	}()
	return watched
}

// close stops the daemon, then the simulators and the database. After a failure it prints
// the warnings of the daemon, because its log may be removed.
func (h *installation) close(failed bool) error {
	var errs []error
	if h.stopDaemon != nil {
		h.stopDaemon()
		<-h.daemonDone
		errs = append(errs, h.daemonErr)
	}
	if h.daemon != nil {
		h.daemon.Close()
	}
	if h.simServer != nil {
		errs = append(errs, h.simServer.Close())
	}
	h.client.CloseIdleConnections()
	if h.db != nil {
		errs = append(errs, h.db.Close())
	}
	if h.log != nil {
		if failed {
			h.printWarnings()
		}
		errs = append(errs, h.log.Close())
	}
	if h.dir != "" && !h.keep {
		errs = append(errs, os.RemoveAll(h.dir))
	}
	return errors.Join(errs...)
}

// printWarnings prints the last warnings and errors of the daemon's log.
func (h *installation) printWarnings() {
	if _, err := h.log.Seek(0, 0); err != nil {
		return
	}
	var lines []string
	scanner := bufio.NewScanner(h.log)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		for _, level := range []slog.Level{slog.LevelWarn, slog.LevelError} {
			if strings.Contains(scanner.Text(), `"level":"`+level.String()+`"`) {
				lines = append(lines, scanner.Text())
			}
		}
	}
	for _, line := range lines[max(0, len(lines)-10):] {
		fmt.Fprintln(os.Stderr, line)
	}
}

package main

import (
	"bufio"
	"context"
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
	"autopost/internal/pg"
	"autopost/internal/pg/schema"
	"autopost/internal/sim/maxmessenger"
	"autopost/internal/sim/telegram"
	"autopost/internal/sim/world"
	"autopost/internal/telemetry"
)

const (
	demoWorkspace = "demo"        // as db/seed.sql calls it
	demoSecret    = "demo-secret" // its hash stands in db/seed.sql; the door is a loopback port
	demoLogSize   = 50_000
)

// demoHouse is everything that the demo runs: database, platforms, daemon.
type demoHouse struct {
	dir    string
	keep   bool
	db     *database
	sims   *world.World
	simURL string
	client *http.Client
	daemon *daemon
	store  *pg.Store

	simServer  *http.Server
	log        *os.File
	stopDaemon context.CancelFunc
	daemonDone chan struct{}
	daemonErr  error
}

// openDemoHouse starts everything, the daemon last. What it started before an error it stops again.
func openDemoHouse(ctx context.Context, o demoOptions) (h *demoHouse, err error) {
	given, err := loadConfig()
	if err != nil {
		return nil, err
	}
	h = &demoHouse{client: &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 8}}}
	opened := h // a return of nil, err takes h away before the deferred call
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
	cfg, err := h.config(given, o.listen)
	if err != nil {
		return nil, err
	}
	if h.db, err = openDatabase(ctx, cfg); err != nil {
		return nil, err
	}
	log := telemetry.NewLogger(h.log, cfg.LogLevel)
	h.daemon, err = newDaemon(ctx, cfg, h.db, nil, log)
	if errors.Is(err, syscall.EADDRINUSE) && !o.fixed {
		if cfg, err = h.config(given, "127.0.0.1:0"); err == nil {
			h.daemon, err = newDaemon(ctx, cfg, h.db, nil, log)
		}
	}
	if err != nil {
		h.daemon = nil
		return nil, err
	}
	h.store = h.daemon.store
	if err := h.furnish(ctx); err != nil {
		return nil, err
	}
	h.startDaemon(ctx)
	return h, nil
}

// makeDir takes the directory that was asked for, or a new one. PostgreSQL's user must be able to pass it.
func (h *demoHouse) makeDir(given config.Config) (err error) {
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
			return notOurs(h.dir)
		}
	}
	h.log, err = os.OpenFile(log, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	return err
}

// notOurs is why the demo does not touch data that it did not make: its daemon
// would send everybody's posts to the simulators.
func notOurs(dir string) error {
	return fmt.Errorf("%s holds data of another installation, whose posts would go to the simulators: "+
		"unset AUTOPOST_DATA_DIR, or name a new directory", dir)
}

// startSimulators serves the platforms, with the rate limits that the real ones publish.
func (h *demoHouse) startSimulators(ctx context.Context) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen for the simulators: %w", err)
	}
	h.sims = world.New(world.Options{LogSize: demoLogSize})
	h.simURL = "http://" + listener.Addr().String()
	h.simServer = &http.Server{Handler: h.sims, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = h.simServer.Serve(listener) }() // ends by close; before that, whoever calls it sees it
	return nil
}

// config is the daemon's: the machine's environment counts for the binaries and the log's level alone.
func (h *demoHouse) config(given config.Config, listen string) (config.Config, error) {
	return config.Load([]string{
		"AUTOPOST_DATA_DIR=" + h.dir,
		"AUTOPOST_PG_BIN=" + given.PostgresBin,
		"AUTOPOST_LISTEN=" + listen,
		"AUTOPOST_LOG=" + strings.ToLower(given.LogLevel.String()),
		"AUTOPOST_TELEGRAM_API_URL=" + h.simURL + "/telegram",
		"AUTOPOST_MAX_API_URL=" + h.simURL + "/max",
		"AUTOPOST_OUTBOUND_ALLOW=127.0.0.0/8",
		"MONITOR_INTERVAL_SECONDS=2",
	})
}

// furnish seeds the rows and makes the platforms know the bots and chats in them.
// The feed stays off until the load begins.
func (h *demoHouse) furnish(ctx context.Context) error {
	workspaces, err := h.store.ListWorkspaces(ctx)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(workspaces, func(w string) bool { return w != demoWorkspace }) {
		return notOurs(h.dir)
	}
	if err := h.rows(ctx, db.Seed); err != nil {
		return fmt.Errorf("db/seed.sql: %w", err)
	}
	channels, err := h.store.ListChannels(ctx, demoWorkspace, 10_000)
	if err != nil {
		return err
	}
	var script strings.Builder
	fmt.Fprintf(&script, `update autopost.pull_sources set enabled = false, config_json = config_json || jsonb_build_object('url', %s)
		where workspace_id = %s and source_id = 'feed';`, sqlText(h.simURL+"/feeds/news.xml"), sqlText(demoWorkspace))
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
			sqlText("file:"+path), sqlText(demoWorkspace), sqlText(c.AuthRef))
	}
	return h.rows(ctx, script.String())
}

// rows runs SQL as the owner, as an operator would: configuration is rows.
func (h *demoHouse) rows(ctx context.Context, script string) error {
	return schema.Seed(ctx, h.db.directURL, script)
}

func sqlText(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

func (h *demoHouse) addChat(c pg.ChannelRow) error {
	id, err := strconv.ParseInt(c.TargetID, 10, 64)
	if err != nil {
		return fmt.Errorf("channel %s: its target %q is no chat id", c.ChannelID, c.TargetID)
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

// makeBot makes a credential up, tells its platform, and returns the file that holds it.
func (h *demoHouse) makeBot(c pg.ChannelRow, n int) (string, error) {
	token := newKey()
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

func (h *demoHouse) startDaemon(ctx context.Context) {
	ctx, h.stopDaemon = context.WithCancel(ctx)
	h.daemonDone = make(chan struct{})
	go func() {
		defer close(h.daemonDone)
		h.daemonErr = h.daemon.Run(ctx)
	}()
}

// watch returns a context that ends with ctx, or when the daemon does.
func (h *demoHouse) watch(ctx context.Context) context.Context {
	watched, cancel := context.WithCancel(ctx)
	go func() {
		<-h.daemonDone
		cancel()
	}()
	return watched
}

// close stops the daemon (which drains), then what it stands on. After a failure
// it shows what the daemon complained about, for the log goes with the directory.
func (h *demoHouse) close(failed bool) error {
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
		errs = append(errs, h.db.close())
	}
	if h.log != nil {
		if failed {
			h.showComplaints()
		}
		errs = append(errs, h.log.Close())
	}
	if h.dir != "" && !h.keep {
		errs = append(errs, os.RemoveAll(h.dir))
	}
	return errors.Join(errs...)
}

// showComplaints prints the last warnings and errors of the daemon's log.
func (h *demoHouse) showComplaints() {
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

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/singleflight"

	"autopost"
	"autopost/internal/admin"
	"autopost/internal/admin/flow"
	"autopost/internal/config"
	"autopost/internal/credential"
	"autopost/internal/dispatch"
	"autopost/internal/ingest"
	"autopost/internal/ingest/pull"
	"autopost/internal/ingest/push"
	"autopost/internal/ingest/updates"
	"autopost/internal/media"
	"autopost/internal/monitor"
	"autopost/internal/outbound"
	"autopost/internal/pg"
	"autopost/internal/pg/schema"
	"autopost/internal/results"
	"autopost/internal/service"
)

const (
	// askEvery is how often it is asked, for all stages at once, which of them have something to do.
	askEvery = 4 * time.Second
	// byThemselves is how often stages look though nobody woke them, a net below that question; the dispatcher
	// does it each roundEvery, by which readiness knows that it lives.
	byThemselves = 5 * time.Minute
	roundEvery   = 30 * time.Second
	// startedUp is when all that only a start needs has been done.
	startedUp = 30 * time.Second
)

// stages are the parts of the daemon that --only picks from.
var stages = []string{"ingest", "dispatch", "monitor", "web"}

// daemon is one running autopost: build it, Run it, Close it.
type daemon struct {
	cfg   config.Config
	db    *database
	store *pg.Store
	blobs *media.Store
	vault *credential.Vault
	// speakers are the adapters, by platform.
	speakers map[autopost.Platform]autopost.Adapter
	bells    pg.Bells
	http     net.Listener
	watch    *watch
	disks    *disks
	group    service.Group
	log      *slog.Logger
}

// newDaemon opens all that the stages need and introduces them to each other. Nothing is served before Run.
func newDaemon(ctx context.Context, cfg config.Config, db *database, only []string, log *slog.Logger) (d *daemon, err error) {
	d = &daemon{cfg: cfg, db: db, bells: pg.NewBells(), log: log}
	opened := d // a return of nil, err takes d away before the deferred call
	defer func() {
		if err != nil {
			opened.Close()
		}
	}()
	if cfg.Migrate {
		if err := schema.Migrate(ctx, db.directURL); err != nil {
			return nil, err
		}
	}
	if d.watch, err = newWatch(ctx, cfg, log); err != nil {
		return nil, err
	}
	d.disks = newDisks(cfg, db.private != nil, log)
	d.disks.tellOf(d.watch.Watch)
	if d.store, err = db.watchedStore(ctx, d.watch, d.disks); err != nil {
		return nil, err
	}
	if err := d.store.Ready(ctx); err != nil {
		return nil, err
	}
	for key, value := range cfg.Settings() {
		if err := d.store.PutSetting(ctx, key, value); err != nil {
			return nil, err
		}
	}
	lease, err := d.store.SendingLease(ctx)
	if err != nil {
		return nil, err
	}
	if d.cfg, err = cfg.UnderLease(lease); err != nil {
		return nil, misuse{err}
	}
	if d.vault, err = newVault(cfg, d.store, log); err != nil {
		return nil, err
	}
	if d.blobs, err = openMedia(ctx, cfg); err != nil {
		return nil, err
	}
	d.blobs.Full = func(err error) { d.disks.note(mediaDisk, err) }
	if d.http, err = new(net.ListenConfig).Listen(ctx, "tcp", cfg.Listen); err != nil {
		return nil, fmt.Errorf("AUTOPOST_LISTEN: %w", err)
	}
	if d.speakers, err = adapters(cfg); err != nil {
		return nil, err
	}
	return d, d.addStages(only)
}

func (d *daemon) addStages(only []string) error {
	on := func(stage string) bool { return len(only) == 0 || slices.Contains(only, stage) }
	runID := uuid.NewString()
	if d.db.private != nil {
		d.group.Add("private postgres", service.Func(d.db.outlived))
	}
	d.group.Add("http", service.Func(func(ctx context.Context) error { return serveHTTP(ctx, d.http, d.handler(on("ingest"), on("web"))) }))
	d.watch.serve(&d.group)
	if d.db.private != nil && !d.db.private.Attached() {
		d.group.Add("postgres", service.Func(d.awaitPrivate))
	}
	d.group.Add("listen", service.Func(func(ctx context.Context) error { return pg.Listen(ctx, d.db.directURL, d.bells, d.log) }))
	d.group.Add("give back", service.Func(d.giveBack))
	if on("ingest") || on("dispatch") || on("monitor") {
		d.group.Add("due", service.Func(func(ctx context.Context) error { return pg.Poll(ctx, d.store, d.bells, askEvery, d.log) }))
	}
	if on("ingest") {
		if err := d.addIngest(runID); err != nil {
			return err
		}
	}
	if on("dispatch") {
		if err := d.addDispatch(runID); err != nil {
			return err
		}
	}
	if on("monitor") {
		return d.addMonitor(runID)
	}
	return nil
}

// giveBack returns what only the start needed, once.
func (d *daemon) giveBack(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-time.After(startedUp):
	}
	if err := service.GiveBack(); err != nil {
		d.log.Warn("daemon.memory_kept", "error", err)
	}
	return nil
}

func (d *daemon) handler(withIngest, withWeb bool) http.Handler {
	mux := http.NewServeMux()
	if withIngest {
		mux.Handle("/hooks/push", push.New(watchedPush{pushStore{d.store}, d.watch.Watch}, d.log))
		mux.Handle("/hooks/push/{workspace_id}/{endpoint_id}", push.NewSigned(watchedSigned{signedStore{d.store, d.vault, d.log}, d.watch.Watch}, d.log))
		hooks := updateStore{pushStore{d.store}}
		mux.Handle("/hooks/telegram", updates.New(autopost.Telegram, hooks, d.log))
		mux.Handle("/hooks/max", updates.New(autopost.MAX, hooks, d.log))
	}
	records := adminStore{d.store}
	api := admin.Handler(admin.Deps{
		Keys: records, Records: records, Log: d.log,
		Media:  flow.Media{Uploads: d.depository(), Limits: mediaLimits(d.cfg), Platforms: handovers{d.speakers, d.vault, d.depository(), d.library(), new(singleflight.Group)}},
		Checks: d.checks(),
	})
	if withWeb {
		mux.Handle("/", api)
	} else {
		mux.Handle("/healthz", api)
		mux.Handle("/readyz", api)
	}
	d.watch.mount(mux)
	return d.watch.Served(area, mux)
}

func (d *daemon) addIngest(runID string) error {
	limits := mediaLimits(d.cfg)
	guarded := outbound.Guarded(outbound.GuardedConfig{
		Allow: d.cfg.OutboundAllow, Timeout: d.cfg.DownloadTimeout, MaxBytes: max(limits.ImageBytes, limits.VideoBytes) + 1,
	})
	worker, err := ingest.NewWorker(ingest.Config{
		Queue: watchedSubmissions{submissionStore{d.store}, d.watch.Watch}, Origins: d.depository(), RunID: runID, Wake: d.bells.Submissions, Interval: byThemselves, Log: d.log,
		Budget:  max(submissionBudget, d.cfg.DownloadTimeout+submissionBudget/4),
		Fetcher: &media.Fetcher{Store: d.blobs, Doer: guarded, Limits: limits, Timeout: d.cfg.DownloadTimeout},
	})
	if err != nil {
		return err
	}
	fanout, err := ingest.NewFanoutWorker(ingest.FanoutConfig{Jobs: fanoutStore{d.store}, Wake: d.bells.Fanout, Interval: byThemselves, Log: d.log})
	if err != nil {
		return err
	}
	sources := pullStore{d.store}
	loop, err := pull.NewLoop(pull.Config{
		Sources: sources, Chunks: sources, Failures: sources, Runs: sources, ChunkSize: d.cfg.PullChunkSize,
		Wake: d.bells.Sources, Interval: byThemselves, Log: d.log,
		Fetchers: watchedFetchers(d.watch.Watch, fetchers(guarded, d.vault)),
	})
	if err != nil {
		return err
	}
	d.group.Add("submissions", worker)
	d.group.Add("fanout", fanout)
	d.group.Add("pull", loop)
	return nil
}

// submissionBudget is the least time that the media of a post have together.
const submissionBudget = 2 * time.Minute

func mediaLimits(cfg config.Config) media.Limits {
	return media.Limits{ImageBytes: cfg.MaxMediaBytesImage, VideoBytes: cfg.MaxMediaBytesVideo}
}

// depository is the media origin together with its rows.
func (d *daemon) depository() *media.Depository {
	return &media.Depository{Store: d.blobs, Rows: mediaRows{d.store}, Limits: mediaLimits(d.cfg)}
}

// library gives deliveries the media origin, and the ids that platforms gave its media.
func (d *daemon) library() media.Library {
	return media.Library{Store: d.blobs, Blobs: mediaBlobs{d.store}}
}

func (d *daemon) addDispatch(runID string) error {
	queue := watchedDispatch{dispatchStore{d.store}, d.watch.Watch}
	dispatcher, err := dispatch.New(dispatch.Config{
		RunID: runID, Host: hostname(), LimitPerWorkspace: d.cfg.DispatcherLimitPerWorkspace, Senders: d.cfg.DispatcherSenders,
		Lease: d.cfg.SendingLease, AdapterTimeout: d.cfg.AdapterTimeout, Poll: roundEvery,
	}, dispatch.Deps{
		Queue: queue, Calls: queue, Commits: queue, Runs: queue, Acts: queue, Credentials: credentials{d.vault},
		Media: d.library(), Adapters: d.speakers, Wake: d.bells.Deliveries, ActsWake: d.bells.Acts, Log: d.log, Watch: d.watch.Watch,
	})
	if err != nil {
		return err
	}
	d.watch.dispatches = true
	d.group.Add("dispatch", dispatcher)
	teller, err := results.New(results.Config{
		Queue: resultQueue{d.store}, Keys: d.vault, Wake: d.bells.Results, Quiet: byThemselves, Log: d.log,
		Client: outbound.Guarded(outbound.GuardedConfig{Allow: d.cfg.OutboundAllow, Timeout: time.Minute, MaxBytes: results.MaxAnswer, Strict: true}),
	})
	if err != nil {
		return err
	}
	d.group.Add("results", teller)
	return nil
}

func (d *daemon) addMonitor(runID string) error {
	teller, err := newTeller(d.cfg, d.vault)
	if err != nil {
		return err
	}
	watcher, err := monitor.New(monitor.Config{Interval: d.cfg.MonitorInterval, RunID: runID, Lapsed: d.bells.Leases, News: d.bells.Alerts, Fingerprint: d.cfg.Fingerprint()}, monitor.Deps{
		Workspaces: d.store, Clock: d.store, Leases: watchedLeases{d.store, d.watch.Watch}, AuthLost: d.store, Floods: d.store, Gates: d.store, Partitions: d.store, Retention: d.store, Intake: d.store,
		Archive: d.store, Integrity: d.store, Media: mediaSweep(d.store, d.blobs), Expiry: d.store, Renewer: d.vault,
		Bots:   &monitor.BotKeeper{Records: botStore{d.store}, Credentials: d.vault, Adapters: d.speakers, PublicURL: d.cfg.PublicURL},
		Alerts: alertStore{d.store}, Disks: d.disks, Teller: teller, Log: d.log,
	})
	if err != nil {
		return err
	}
	d.group.Add("monitor", watcher)
	return nil
}

// awaitPrivate fails when the private PostgreSQL ends before ctx: only another start of the daemon brings it back.
func (d *daemon) awaitPrivate(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-d.db.private.Done():
		return fmt.Errorf("the private PostgreSQL ended: see %s, and start autopost serve again", filepath.Join(d.cfg.DataDir, "pg", "postgres.log"))
	}
}

// Addr is where the daemon listens.
func (d *daemon) Addr() string { return d.http.Addr().String() }

// Run serves until ctx ends, then drains.
func (d *daemon) Run(ctx context.Context) error { return d.group.Run(ctx) }

// Close gives back what newDaemon opened; the database stays its owner's.
func (d *daemon) Close() {
	if d.http != nil {
		_ = d.http.Close() // closed already when Run has ended
	}
	if d.blobs != nil {
		_ = d.blobs.Close()
	}
	if d.store != nil {
		d.store.Close()
	}
	d.watch.close()
}

// serveHTTP serves until ctx ends, then lets requests in flight finish.
func serveHTTP(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       time.Minute,
		WriteTimeout:      2 * time.Minute,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
	defer cancel()
	err := server.Shutdown(stop)
	if serveErr := <-failed; !errors.Is(serveErr, http.ErrServerClosed) {
		err = errors.Join(err, serveErr)
	}
	return err
}

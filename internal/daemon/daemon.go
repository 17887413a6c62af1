// Package daemon builds the stages of autopost serve and runs them.
package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/singleflight"

	"autopost"
	"autopost/internal/adapter"
	"autopost/internal/api"
	"autopost/internal/api/stream"
	"autopost/internal/authlimit"
	"autopost/internal/bot"
	"autopost/internal/config"
	"autopost/internal/credential"
	"autopost/internal/dispatch"
	"autopost/internal/ingest"
	"autopost/internal/ingest/botupdates"
	"autopost/internal/ingest/pull"
	"autopost/internal/ingest/push"
	"autopost/internal/media"
	"autopost/internal/monitor"
	"autopost/internal/oidc"
	"autopost/internal/outbound"
	"autopost/internal/pg"
	"autopost/internal/rawpayload"
	"autopost/internal/web"
	"autopost/internal/webhooks"
	"autopost/internal/worker"
)

const (
	// dueInterval is the period of due_stages, one call for all stages.
	dueInterval = 4 * time.Second
	// fallbackInterval is the poll period of a stage if no wake-up arrives. The dispatcher uses dispatchInterval:
	// readiness checks its polls.
	fallbackInterval = 5 * time.Minute
	dispatchInterval = 30 * time.Second
	// reportTimeout bounds the record of a panic.
	reportTimeout = 5 * time.Second
)

// Stages are the values of --only.
var Stages = []string{"ingest", "dispatch", "monitor", "bot", "web"}

// Daemon is one autopost serve: make it with New, Run it, Close it.
type Daemon struct {
	cfg      config.Config
	db       *Database
	store    *pg.Store
	blobs    *media.Store
	runID    string // names this daemon in its leases
	vault    *credential.Vault
	raw      *rawpayload.Keeper
	adapters map[autopost.Platform]autopost.Adapter
	wakeups  pg.Wakeups
	http     net.Listener
	watch    *watch
	disks    *disks
	stream   *stream.Hub
	group    worker.Supervisor
	bot      *bot.Worker // nil: this daemon does not run the stage
	// pages means that the stage web runs.
	pages bool
	// once has the links of this process that sign in without a password.
	once onceLinks
	// identity signs people in by OpenID Connect; nil without a provider.
	identity *oidc.Provider
	// tokens are the endpoints that give secrets for codes.
	tokens map[autopost.Platform]adapter.TokenEndpoint
	log    *slog.Logger
}

// New opens what the stages need and builds them. Nothing runs before Run.
func New(ctx context.Context, cfg config.Config, db *Database, only []string, log *slog.Logger) (d *Daemon, err error) {
	d = &Daemon{cfg: cfg, db: db, wakeups: pg.NewWakeups(), log: log}
	opened := d // return nil, err sets d to nil before the deferred call
	defer func() {
		if err != nil {
			opened.Close()
		}
	}()
	if cfg.Migrate {
		if err := db.Migrate(ctx, log); err != nil {
			return nil, err
		}
	}
	if d.watch, err = newWatch(ctx, cfg, log); err != nil {
		return nil, err
	}
	d.disks = newDisks(cfg, db.Private != nil, log)
	d.disks.observeBy(d.watch.Recorder)
	if d.store, err = db.openRecorded(ctx, d.watch, d.disks, d.wakeups.Streams); err != nil {
		return nil, err
	}
	if err := d.store.Ready(ctx); err != nil {
		return nil, err
	}
	restored, err := d.store.NoteCluster(ctx)
	if err != nil {
		return nil, err
	}
	if restored {
		log.ErrorContext(ctx, "daemon.restored_copy", "error", "this database was restored from a backup and sends nothing", "remedy", RestoreRemedy)
	}
	d.runID = uuid.NewString()
	d.store = d.store.ForRun(d.runID)
	if err := writeSettings(ctx, d.store, cfg); err != nil {
		return nil, err
	}
	lease, err := d.store.SendingLease(ctx)
	if err != nil {
		return nil, err
	}
	if d.cfg, err = cfg.UnderLease(lease); err != nil {
		return nil, err
	}
	if d.vault, err = NewVault(cfg, d.store, log); err != nil {
		return nil, err
	}
	if d.blobs, err = OpenMedia(ctx, cfg); err != nil {
		return nil, err
	}
	d.raw = NewRawPayloads(cfg, d.store, d.vault, d.blobs, log)
	d.blobs.Full = func(err error) { d.disks.note(mediaDisk, err) }
	if d.http, err = new(net.ListenConfig).Listen(ctx, "tcp", cfg.Listen); err != nil {
		return nil, fmt.Errorf("AUTOPOST_LISTEN: %w", err)
	}
	d.warnIfOpen(ctx)
	if d.adapters, err = Adapters(cfg); err != nil {
		return nil, err
	}
	if d.tokens, err = TokenEndpoints(cfg); err != nil {
		return nil, err
	}
	if d.identity, err = identityProvider(cfg); err != nil {
		return nil, err
	}
	return d, d.addStages(only)
}

// RestoreRemedy is what an operator does with a restored copy.
const RestoreRemedy = "stop the original, read docs/operate/backup.md, then run: autopost restore confirm --reason REASON"

// writeSettings writes the settings that the environment sets into the database.
func writeSettings(ctx context.Context, store *pg.Store, cfg config.Config) error {
	values := pg.Fields{}
	for key, value := range cfg.Settings() {
		encoded, err := json.Marshal(value)
		if err != nil {
			return fmt.Errorf("encode setting %s: %w", key, err)
		}
		values[key] = encoded
	}
	_, err := store.ApplySettings(ctx, pg.OperatorAction{Operator: cmp.Or(Operator(), "serve"), Reason: "the environment of serve"}, values)
	return err
}

func (d *Daemon) addStages(only []string) error {
	on := func(stage string) bool { return len(only) == 0 || slices.Contains(only, stage) }
	d.pages = on("web")
	d.group.Panicked = func(ctx context.Context, stage string, failure *worker.Panic) {
		d.reportPanic(ctx, stage, failure)
	}
	if d.db.Private != nil {
		d.group.Add("private postgres", worker.Func(d.db.awaitEnd))
	}
	d.stream = stream.New(stream.Config{Store: d.store, Wake: d.wakeups.Streams, Log: d.log})
	d.group.Add("http", worker.Func(func(ctx context.Context) error { return serveHTTP(ctx, d.http, d.handler(on("ingest"), d.pages)) }))
	if on("web") {
		d.group.Add("stream", d.stream) // it stops first: the end of the HTTP server waits for open streams
	}
	d.watch.serve(&d.group)
	d.group.Add("listen", worker.Func(func(ctx context.Context) error { return pg.Listen(ctx, d.db.DirectURL, d.wakeups, d.log) }))
	if on("ingest") || on("dispatch") || on("monitor") || on("bot") {
		d.group.Add("due", worker.Func(func(ctx context.Context) error { return pg.Poll(ctx, d.store, d.wakeups, dueInterval, d.log) }))
	}
	if on("ingest") {
		if err := d.addIngest(); err != nil {
			return err
		}
	}
	if on("dispatch") {
		if err := d.addDispatch(); err != nil {
			return err
		}
	}
	if on("bot") {
		if err := d.addBot(!on("dispatch")); err != nil {
			return err
		}
	}
	if on("monitor") {
		return d.addMonitor()
	}
	return nil
}

func (d *Daemon) handler(withIngest, withWeb bool) http.Handler {
	mux := http.NewServeMux()
	if withIngest {
		mux.Handle("/hooks/push", push.New(rejectedPushes{instrumentedPush{d.store, d.watch.Recorder}, d.raw}, d.log))
		mux.Handle("/hooks/push/{workspace_id}/{endpoint_id}", push.NewSigned(rejectedPushes{instrumentedPush{d.store, d.watch.Recorder}, d.raw}, d.vault, d.log))
		mux.Handle("/hooks/events", push.NewEvents(d.store, d.log))
		mux.Handle("/hooks/telegram", botupdates.New(autopost.Telegram, d.store, d.log))
		mux.Handle("/hooks/max", botupdates.New(autopost.MAX, d.store, d.log))
	}
	credentials := d.credentials()
	pages := web.Deps{Store: d.store, Changes: d.stream, Accounts: credentials, Logins: &authlimit.Logins{}, Identity: d.identity, Once: d.once.take, PublicURL: d.cfg.PublicURL, Log: d.log}
	api := api.New(api.Deps{
		Store: d.store, Log: d.log, Raw: d.raw, Stream: d.stream, Sessions: web.Sessions(pages), People: web.People(pages), Credentials: credentials,
		Sources: SourceTester{d.store, Fetchers(outbound.GuardedConfig{Allow: d.cfg.OutboundAllow, Timeout: d.cfg.DownloadTimeout}, d.vault)},
		Media:   api.Media{Uploads: d.workspaceMedia(), Limits: mediaLimits(d.cfg), Platforms: MediaProxy{d.adapters, d.vault, d.workspaceMedia(), d.mediaProvider(), new(singleflight.Group)}},
		Checks:  d.checks(),
	})
	if withWeb {
		pages.API = api
		mux.Handle("/", web.Handler(pages, api))
	} else {
		mux.Handle("/healthz", api)
		mux.Handle("/readyz", api)
	}
	d.watch.mount(mux)
	return d.watch.Served(area, authlimit.New(mux, d.log))
}

func (d *Daemon) addIngest() error {
	limits := mediaLimits(d.cfg)
	guard := outbound.GuardedConfig{
		Allow: d.cfg.OutboundAllow, Timeout: d.cfg.DownloadTimeout, MaxBytes: max(limits.ImageBytes, limits.VideoBytes) + 1,
	}
	worker, err := ingest.NewWorker(ingest.Config{
		Store: instrumentedSubmissions{d.store, d.watch.Recorder}, Origins: d.workspaceMedia(), RunID: d.runID, Wake: d.wakeups.Submissions, Interval: fallbackInterval, Log: d.log,
		Budget:  max(submissionBudget, d.cfg.DownloadTimeout+submissionBudget/4),
		Fetcher: &media.Fetcher{Store: d.blobs, Doer: outbound.Guarded(guard), Limits: limits, Timeout: d.cfg.DownloadTimeout},
	})
	if err != nil {
		return err
	}
	fanout, err := ingest.NewFanoutWorker(ingest.FanoutConfig{Store: d.store, Wake: d.wakeups.Fanout, Interval: fallbackInterval, Log: d.log})
	if err != nil {
		return err
	}
	recurrences, err := ingest.NewRecurrenceWorker(ingest.RecurrenceConfig{Store: d.store, Wake: d.wakeups.Recurrences, Interval: fallbackInterval, Log: d.log})
	if err != nil {
		return err
	}
	loop, err := pull.NewLoop(pull.Config{
		Store: rejectedItems{d.store, d.raw}, RunID: d.runID, ChunkSize: d.cfg.PullChunkSize,
		Wake: d.wakeups.Sources, Interval: fallbackInterval, Log: d.log,
		Fetchers: instrumentedFetchers(d.watch.Recorder, Fetchers(guard, d.vault)),
	})
	if err != nil {
		return err
	}
	d.group.Add("submissions", worker)
	d.group.Add("fanout", fanout)
	d.group.Add("recurrences", recurrences)
	d.group.Add("pull", loop)
	return d.addFiles(d.runID)
}

// submissionBudget is the least time for all media of a post.
const submissionBudget = 2 * time.Minute

func mediaLimits(cfg config.Config) media.Limits {
	return media.Limits{ImageBytes: cfg.MaxMediaBytesImage, VideoBytes: cfg.MaxMediaBytesVideo}
}

// workspaceMedia is the media store with its rows.
func (d *Daemon) workspaceMedia() *media.WorkspaceStore {
	return NewUploads(d.cfg, d.store, d.blobs)
}

// mediaProvider gives deliveries access to the media store, and to the ids that platforms gave its media.
func (d *Daemon) mediaProvider() media.Provider {
	return media.Provider{Store: d.blobs, Blobs: d.store}
}

func (d *Daemon) addDispatch() error {
	dispatcher, err := dispatch.New(dispatch.Config{
		RunID: d.runID, Host: Hostname(), LimitPerWorkspace: d.cfg.DispatcherLimitPerWorkspace, Senders: d.cfg.DispatcherSenders,
		Lease: d.cfg.SendingLease, AdapterTimeout: d.cfg.AdapterTimeout, Poll: dispatchInterval,
	}, dispatch.Deps{
		Store: d.store, Credentials: d.vault, Media: d.mediaProvider(), Raw: d.raw, Adapters: d.adapters,
		Wake: d.wakeups.Deliveries, PostChangesWake: d.wakeups.PostChanges, Log: d.log, Recorder: d.watch.Recorder,
	})
	if err != nil {
		return err
	}
	d.watch.dispatches = true
	d.group.Add("dispatch", dispatcher)
	sender, err := webhooks.New(webhooks.Config{
		Store: d.store, Keys: d.vault, Wake: d.wakeups.Webhooks, MaxInterval: fallbackInterval, Log: d.log,
		Client: outbound.Guarded(outbound.GuardedConfig{Allow: d.cfg.OutboundAllow, Timeout: time.Minute, MaxBytes: webhooks.MaxAnswer, Strict: true}),
	})
	if err != nil {
		return err
	}
	d.group.Add("webhooks", sender)
	return nil
}

// addBot adds the stage that sends the messages of the shop bot. heartbeats means that no dispatcher sends those of the run.
func (d *Daemon) addBot(heartbeats bool) error {
	stage, err := bot.New(bot.Config{
		RunID: d.runID, Host: Hostname(), Store: d.store, Credentials: d.vault, Media: d.mediaProvider(), Adapters: d.adapters, Heartbeats: heartbeats,
		Wake: d.wakeups.Bot, Interval: dispatchInterval, AdapterTimeout: d.cfg.AdapterTimeout, Recorder: d.watch.Recorder, Log: d.log,
	})
	if err != nil {
		return err
	}
	d.bot = stage
	d.group.Add("bot", stage)
	return nil
}

func (d *Daemon) addMonitor() error {
	notifier, err := newNotifier(d.cfg, d.vault)
	if err != nil {
		return err
	}
	maintenance, err := monitor.New(monitor.Config{
		Interval: d.cfg.MonitorInterval, RunID: d.runID, LeaseWake: d.wakeups.Leases, AlertWake: d.wakeups.Alerts, ModerationWake: d.wakeups.Moderation, Fingerprint: d.cfg.Fingerprint(),
	}, monitor.Deps{
		Store: d.store, Bucket: d.blobs, Renewer: d.vault, Disks: d.disks, Notifier: notifier, Moderator: notifier, Recorder: d.watch.Recorder, Log: d.log,
		Bots: monitor.Bots{Credentials: d.vault, Adapters: d.adapters, PublicURL: d.cfg.PublicURL},
	})
	if err != nil {
		return err
	}
	d.group.Add("monitor", maintenance)
	return nil
}

// reportPanic counts a panic in a stage and records it in the database, which raises an alert.
func (d *Daemon) reportPanic(ctx context.Context, stage string, failure *worker.Panic) {
	d.watch.Panicked(stage)
	d.log.ErrorContext(ctx, "stage.panicked", "stage", stage, "error", failure, "stack", failure.Stack)
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	report := monitor.DutyReport{RunID: d.runID, Duty: "stage:" + stage, At: time.Now(), Err: failure.Error(), Config: d.cfg.Fingerprint()}
	if err := d.store.ReportDuty(ctx, report); err != nil {
		d.log.ErrorContext(ctx, "stage.panic_not_recorded", "stage", stage, "error", err)
	}
}

// warnIfOpen logs that other machines can reach the listener.
func (d *Daemon) warnIfOpen(ctx context.Context) {
	if at, err := netip.ParseAddrPort(d.Addr()); err == nil && !at.Addr().IsLoopback() {
		d.log.WarnContext(ctx, "http.opened_to_network", "address", d.Addr(), "remedy", "put TLS in front, or set AUTOPOST_LISTEN to a loopback address")
	}
}

// Addr is the address of the HTTP listener.
func (d *Daemon) Addr() string { return d.http.Addr().String() }

// Store returns the daemon's store. Close closes it.
func (d *Daemon) Store() *pg.Store { return d.store }

// rawDrain is the time for pending raw payloads after the stages have ended.
const rawDrain = 5 * time.Second

// Run runs the stages until ctx ends, then drains.
func (d *Daemon) Run(ctx context.Context) error {
	err := d.group.Run(ctx)
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), rawDrain)
	defer cancel()
	d.raw.Wait(drain)
	return err
}

// Close closes what New opened. It does not close the Database.
func (d *Daemon) Close() {
	if d.http != nil {
		_ = d.http.Close() // Run may have closed it
	}
	if d.blobs != nil {
		_ = d.blobs.Close()
	}
	if d.store != nil {
		d.store.Close()
	}
	d.watch.close()
}

// serveHTTP serves until ctx ends, then waits for running requests.
func serveHTTP(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{
		Handler:           contained(protected(handler)),
		BaseContext:       func(net.Listener) context.Context { return context.WithoutCancel(ctx) }, // requests outlive the stop
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       time.Minute,
		WriteTimeout:      2 * time.Minute,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
	}
	failed := make(chan error, 1)
	go worker.Task(ctx, func() { failed <- server.Serve(bounded(listener, connectionsPerAddress)) })()
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

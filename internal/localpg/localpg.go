package localpg

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// startWithin bounds a whole start. Crash recovery may take minutes, and an interrupted recovery
	// starts over next time.
	startWithin = 10 * time.Minute
	// heldWithin bounds the wait for a server that holds the data directory and does not answer.
	heldWithin = 60 * time.Second
	// stopWithin bounds the clean shutdown of a server after a failed start.
	stopWithin = 5 * time.Second
	heldEvery  = 200 * time.Millisecond
	pollEvery  = 20 * time.Millisecond
)

// ErrNoCluster means that the directory has no cluster, and Options.Existing forbids to create one.
var ErrNoCluster = errors.New("the directory has no database")

// Instance is a running private PostgreSQL.
type Instance struct {
	url      string
	proc     *process
	stopOnce sync.Once
	stopErr  error
}

// Start returns the private PostgreSQL of o.Dir, ready for connections. It attaches to a running
// server, or starts one and creates the cluster if needed and allowed. It returns ErrNoBinaries if this
// machine has no usable PostgreSQL.
func Start(ctx context.Context, o Options) (*Instance, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	instance, err := start(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("private postgres in %s: %w", o.Dir, err)
	}
	return instance, nil
}

func start(ctx context.Context, o Options) (*Instance, error) {
	major, err := clusterMajor(o.Dir)
	if err != nil {
		return nil, err
	}
	if major == 0 && o.Existing {
		return nil, ErrNoCluster
	}
	found, err := machine().find(ctx, o.BinDir, major)
	if err != nil {
		return nil, err
	}
	a, err := accountFor(filepath.Join(o.Dir, dataName))
	if err != nil {
		return nil, err
	}
	if err := a.mayReach(o.Dir); err != nil {
		return nil, err
	}
	if err := a.makeDir(o.Dir); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	unlock, err := lock(ctx, filepath.Join(o.Dir, lockName))
	if err != nil {
		return nil, err
	}
	defer unlock()
	secret, err := password(o.Dir)
	if err != nil {
		return nil, err
	}
	// Another process may have created the cluster while this one waited for the lock.
	if major, err = clusterMajor(o.Dir); err != nil {
		return nil, err
	}
	if major == 0 {
		err = makeCluster(ctx, o, found, a, secret)
	} else {
		err = fits(found, major)
	}
	if err != nil {
		return nil, err
	}
	return attachOrLaunch(ctx, o, found, a, secret)
}

// attachOrLaunch attaches to a server that answers, or starts one. It repeats the start while another
// server, which is starting or stopping, holds the data directory.
func attachOrLaunch(ctx context.Context, o Options, found installation, a account, secret string) (*Instance, error) {
	giveUp := time.Now().Add(heldWithin)
	for {
		if _, dir := lastServer(o.Dir); dir != "" {
			if err := ping(ctx, dsn(dir, "postgres", secret)); err == nil {
				return ready(ctx, dir, secret, nil)
			}
		}
		socket, err := socketDir(o.Dir, a)
		if err != nil {
			return nil, err
		}
		proc, err := startProcess(a, o.Dir, filepath.Join(found.bin, "postgres"), serverArgs(o, socket)...)
		if err != nil {
			return nil, err
		}
		err = awaitReady(ctx, proc, dsn(socket, "postgres", secret))
		if err == nil {
			return ready(ctx, socket, secret, proc)
		}
		if ctx.Err() != nil || !held(o.Dir) || time.Now().After(giveUp) {
			return nil, fmt.Errorf("%w; the log ends:\n%s", err, tail(filepath.Join(o.Dir, logName)))
		}
		if err := pause(ctx, heldEvery); err != nil {
			return nil, err
		}
	}
}

// Running reports whether a server runs on the data of a directory. It checks files and processes
// without a connection.
func Running(dir string) bool { return held(dir) }

// held reports whether a server that this process did not start runs on the data.
func held(dir string) bool {
	pid, _ := lastServer(dir)
	return pid > 0 && !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}

// serverArgs pass every setting on the command line. The configuration file stays as initdb made it.
func serverArgs(o Options, socket string) []string {
	args := []string{"-D", filepath.Join(o.Dir, dataName), "-k", socket}
	settings := []string{
		"listen_addresses=", "port=5432", "unix_socket_permissions=0700",
		"max_connections=" + strconv.Itoa(o.MaxConnections),
		"shared_buffers=32MB", "timezone=UTC", "log_timezone=UTC", "jit=off", "logging_collector=off",
	}
	if o.Volatile {
		settings = append(settings, "fsync=off", "full_page_writes=off", "synchronous_commit=off")
	}
	for _, setting := range append(settings, o.Settings...) {
		args = append(args, "-c", setting)
	}
	return args
}

// awaitReady waits until the server accepts connections. It stops a server that is not ready in time. A
// server that exits is an error.
func awaitReady(ctx context.Context, proc *process, url string) error {
	for {
		if err := ping(ctx, url); err == nil {
			return nil
		}
		select {
		case <-proc.exited:
			return fmt.Errorf("the server ended while starting: %w", proc.err)
		case <-time.After(pollEvery):
		case <-ctx.Done():
			stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
			defer cancel()
			return errors.Join(fmt.Errorf("wait for the server: %w", ctx.Err()), proc.stop(stopping))
		}
	}
}

func ping(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

// ready creates the database if needed and returns the instance.
func ready(ctx context.Context, socket, secret string, proc *process) (*Instance, error) {
	instance := &Instance{url: dsn(socket, database, secret), proc: proc}
	err := ensureDatabase(ctx, dsn(socket, "postgres", secret))
	if err != nil {
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
		defer cancel()
		return nil, errors.Join(err, instance.Stop(stopping))
	}
	return instance, nil
}

func ensureDatabase(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	var exists bool
	err = conn.QueryRow(ctx, "select exists (select 1 from pg_catalog.pg_database where datname = $1)", database).Scan(&exists)
	if err != nil || exists {
		return err
	}
	if _, err := conn.Exec(ctx, "create database "+pgx.Identifier{database}.Sanitize()); err != nil {
		return fmt.Errorf("create database %s: %w", database, err)
	}
	return nil
}

func dsn(socket, database, secret string) string {
	u := url.URL{Scheme: "postgres", User: url.UserPassword(superuser, secret), Path: "/" + database}
	u.RawQuery = url.Values{"host": {socket}, "port": {"5432"}}.Encode()
	return u.String()
}

// URL is the DSN of the database "autopost" as its superuser, over the Unix socket. It contains the
// password.
func (i *Instance) URL() string { return i.url }

// Attached reports whether another process started this server and will stop it.
func (i *Instance) Attached() bool { return i.proc == nil }

// Done is closed when a server that this process started has ended. It is nil for an attached server.
func (i *Instance) Done() <-chan struct{} {
	if i.proc == nil {
		return nil
	}
	return i.proc.exited
}

// Stop shuts down a server that this process started. Clients are disconnected; committed work is safe.
// If ctx ends first, the server quits at once and recovers at its next start. Stop does not stop an
// attached server. Repeated calls return the first result.
func (i *Instance) Stop(ctx context.Context) error {
	if i.proc == nil {
		return nil
	}
	i.stopOnce.Do(func() { i.stopErr = i.proc.stop(ctx) })
	return i.stopErr
}

func (p *process) stop(ctx context.Context) error {
	p.signal(syscall.SIGINT)
	select {
	case <-p.exited:
		return nil
	case <-ctx.Done():
		p.signal(syscall.SIGQUIT)
		<-p.exited
		return fmt.Errorf("stop private postgres: made to quit without a checkpoint: %w", ctx.Err())
	}
}

// lock prevents other processes from starting or making the same instance.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = file.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), file.Close())
		}
		if err := pause(ctx, pollEvery); err != nil {
			return nil, errors.Join(fmt.Errorf("another process holds %s: %w", path, err), file.Close())
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	startTimeout = 30 * time.Second
	stopTimeout  = 60 * time.Second
	pollInterval = 10 * time.Millisecond
)

// healthClient asks whether a daemon is ready.
var healthClient = &http.Client{Timeout: 5 * time.Second}

// Options configure a daemon.
type Options struct {
	// Program is the path of the binary.
	Program string
	// DatabaseURL is a migrated database.
	DatabaseURL string
	// PlatformURL is the base URL of Telegram.
	PlatformURL string
	// Env are additional variables, NAME=value.
	Env []string
}

// Daemon is a running autopost serve.
type Daemon struct {
	// URL is its base URL.
	URL string

	cmd    *exec.Cmd
	dir    string
	exited chan error
}

// Start starts a daemon and waits until it is ready. The caller must stop it.
func Start(ctx context.Context, o Options) (d *Daemon, err error) {
	address, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	d = &Daemon{URL: "http://" + address, exited: make(chan error, 1)}
	if d.dir, err = os.MkdirTemp("", "autopost-live-"); err != nil {
		return nil, err
	}
	log, err := os.Create(d.logFile())
	if err != nil {
		return nil, err
	}
	defer log.Close()                        //nolint:errcheck // the process has its own copy
	d.cmd = exec.Command(o.Program, "serve") //nolint:noctx // Stop ends it
	d.cmd.Stderr = log
	d.cmd.Env = append([]string{
		"DATABASE_URL=" + o.DatabaseURL, "AUTOPOST_MIGRATE=never", "AUTOPOST_DATA_DIR=" + d.dir, "AUTOPOST_LISTEN=" + address,
		"AUTOPOST_TELEGRAM_API_URL=" + o.PlatformURL,
	}, o.Env...)
	if err := d.cmd.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(d.dir))
	}
	go func() { d.exited <- d.cmd.Wait() }()
	if err := d.untilReady(ctx); err != nil {
		return nil, errors.Join(err, d.Stop())
	}
	return d, nil
}

func (d *Daemon) logFile() string { return filepath.Join(d.dir, "daemon.log") }

func freeAddress(ctx context.Context) (string, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

func (d *Daemon) untilReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		if d.ready(ctx) {
			return nil
		}
		select {
		case err := <-d.exited:
			d.exited <- err
			return fmt.Errorf("the daemon ended at the start: %w: %s", err, d.logTail())
		case <-ctx.Done():
			return fmt.Errorf("the daemon is not ready in time: %s", d.logTail())
		case <-time.After(pollInterval):
		}
	}
}

func (d *Daemon) ready(ctx context.Context) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.URL+"/readyz", nil)
	if err != nil {
		return false
	}
	answer, err := healthClient.Do(req)
	if err != nil {
		return false
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

// logTail returns the end of the log.
func (d *Daemon) logTail() string {
	log, err := os.ReadFile(d.logFile())
	if err != nil {
		return err.Error()
	}
	return string(log[max(0, len(log)-2000):])
}

// Stop ends the daemon and waits until it has drained.
func (d *Daemon) Stop() error {
	_ = d.cmd.Process.Signal(syscall.SIGTERM) // it may have ended already
	var err error
	select {
	case err = <-d.exited:
	case <-time.After(stopTimeout):
		err = errors.Join(errors.New("the daemon did not stop"), d.cmd.Process.Kill())
	}
	if err != nil {
		err = fmt.Errorf("%w: %s", err, d.logTail())
	}
	return errors.Join(err, os.RemoveAll(d.dir))
}

// Usage is the use of resources of a daemon.
type Usage struct {
	// Processor is its processor time so far.
	Processor time.Duration
	// Own is its private resident memory in bytes.
	Own int64
	// Program is the resident memory of its program file in bytes.
	Program int64
}

// Usage reads /proc. It works only on Linux.
func (d *Daemon) Usage() (Usage, error) {
	times, err := TimesOf(d.cmd.Process.Pid)
	if err != nil {
		return Usage{}, err
	}
	memory, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", d.cmd.Process.Pid))
	if err != nil {
		return Usage{}, err
	}
	pages := strings.Fields(string(memory)) // size, resident, shared (of files), …
	if len(pages) < 3 {
		return Usage{}, fmt.Errorf("/proc/%d/statm must have three fields", d.cmd.Process.Pid)
	}
	resident, err := strconv.ParseInt(pages[1], 10, 64)
	if err != nil {
		return Usage{}, err
	}
	shared, err := strconv.ParseInt(pages[2], 10, 64)
	if err != nil {
		return Usage{}, err
	}
	page := int64(os.Getpagesize())
	return Usage{Processor: times.Own, Own: (resident - shared) * page, Program: shared * page}, nil
}

// Processors returns the idle time and the total time of the processors since the start of the
// machine, in ticks. It works only on Linux.
func Processors() (idle, all float64, err error) {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0, err
	}
	line, _, _ := strings.Cut(string(stat), "\n")
	// cpu, user, nice, system, idle, iowait, …
	for i, text := range strings.Fields(line) {
		if i == 0 {
			continue
		}
		ticks, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return 0, 0, err
		}
		if all += ticks; i == 4 || i == 5 {
			idle += ticks
		}
	}
	return idle, all, nil
}

package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"sync"
	"time"

	"autopost"
	"autopost/internal/config"
	"autopost/internal/telemetry"
)

// What may lie on a disk of its own.
const (
	databaseDisk = "database"
	mediaDisk    = "media"
)

const (
	// leastFree and leastShare are what must be free of a disk, in bytes and of the whole.
	leastFree  = 1 << 30
	leastShare = 0.05
	// refusedFor is how long a disk that took nothing is taken to be full.
	refusedFor = time.Minute
)

// disks are those that the daemon and its database write on: how full those are that this machine
// can see, and which took nothing a moment ago, wherever they are.
type disks struct {
	// folders lie on the disks that can be seen, by what is in them.
	folders map[string]string
	watch   *telemetry.Watch
	log     *slog.Logger

	mu      sync.Mutex
	refused map[string]time.Time
}

func newDisks(cfg config.Config, private bool, log *slog.Logger) *disks {
	d := &disks{folders: map[string]string{}, log: log, refused: map[string]time.Time{}}
	if dir, ok := mediaFolder(cfg.BlobURL); ok {
		d.folders[mediaDisk] = dir
	}
	if private {
		d.folders[databaseDisk] = filepath.Join(cfg.DataDir, "pg")
	}
	return d
}

// mediaFolder is where the media origin lies on this machine, if it does.
func mediaFolder(blobURL string) (dir string, ok bool) {
	u, err := url.Parse(blobURL)
	if err != nil || u.Scheme != "file" {
		return "", false
	}
	return u.Path, true
}

// tellOf has the watch told of refusals, and tell how full the disks are.
func (d *disks) tellOf(w *telemetry.Watch) {
	d.watch = w
	w.Disks(func() map[string]telemetry.Space {
		spaces := map[string]telemetry.Space{}
		for name, dir := range d.folders {
			if free, size, ok := diskOf(dir); ok {
				spaces[name] = telemetry.Space{Free: free, Size: size}
			}
		}
		return spaces
	})
}

// Low implements monitor.Disks.
func (d *disks) Low() error {
	var low []error
	for _, name := range []string{databaseDisk, mediaDisk} {
		dir, seen := d.folders[name]
		if !seen {
			continue
		}
		if free, size, ok := diskOf(dir); ok && isLow(free, size) {
			low = append(low, fmt.Errorf("the disk of the %s: %s", name, spaceWords(dir, free, size)))
		}
	}
	return errors.Join(low...)
}

func isLow(free, size uint64) bool {
	return free < leastFree || float64(free) < leastShare*float64(size)
}

func spaceWords(dir string, free, size uint64) string {
	return fmt.Sprintf("%.1f of %.1f GB are free at %s", float64(free)/1e9, float64(size)/1e9, dir)
}

// note remembers that a disk took nothing, if that is what an error says. The first of many is logged.
func (d *disks) note(disk string, err error) {
	if !errors.Is(err, autopost.ErrNoRoom) {
		return
	}
	d.watch.Refused(disk)
	d.mu.Lock()
	defer d.mu.Unlock()
	if time.Since(d.refused[disk]) >= refusedFor {
		d.log.Error("disk.full", "disk", disk, "remedy", "make room there; what waits goes on by itself: docs/operate/disks.md", "error", err)
	}
	d.refused[disk] = time.Now()
}

// full says that a disk took nothing a moment ago; nil when it was not so.
func (d *disks) full(disk string) error {
	d.mu.Lock()
	ago := time.Since(d.refused[disk])
	d.mu.Unlock()
	if ago >= refusedFor {
		return nil
	}
	return fmt.Errorf("the disk of the %s was full %s ago", disk, ago.Round(time.Second))
}

// asked is a pg.Asked that tells the watch, and notes a full disk.
func (d *disks) asked(function string, took time.Duration, err error) {
	d.watch.Asked(function, took, err != nil)
	d.note(databaseDisk, err)
}

package daemon

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

// Uses of a disk.
const (
	databaseDisk = "database"
	mediaDisk    = "media"
)

const (
	// leastFree and leastShare are the free space that a disk needs, in bytes and as a share of its size.
	leastFree  = 1 << 30
	leastShare = 0.05
	// refusedFor is how long a disk counts as full after a failed write.
	refusedFor = time.Minute
)

// disks are the disks of the daemon and its database. It knows the free space of those on this machine, and the recent
// failed writes of all.
type disks struct {
	// folders are on the disks of this machine, by their use.
	folders  map[string]string
	recorder *telemetry.Recorder
	log      *slog.Logger

	mu      sync.Mutex
	refused map[string]time.Time
}

func newDisks(cfg config.Config, private bool, log *slog.Logger) *disks {
	d := &disks{folders: map[string]string{}, log: log, refused: map[string]time.Time{}}
	if dir, ok := MediaFolder(cfg.BlobURL); ok {
		d.folders[mediaDisk] = dir
	}
	if private {
		d.folders[databaseDisk] = filepath.Join(cfg.DataDir, "pg")
	}
	return d
}

// MediaFolder returns the folder of the media store if it is on this machine.
func MediaFolder(blobURL string) (dir string, ok bool) {
	u, err := url.Parse(blobURL)
	if err != nil || u.Scheme != "file" {
		return "", false
	}
	return u.Path, true
}

// observeBy makes r record failed writes and the free space.
func (d *disks) observeBy(r *telemetry.Recorder) {
	d.recorder = r
	r.Disks(func() map[string]telemetry.Space {
		spaces := map[string]telemetry.Space{}
		for name, dir := range d.folders {
			if free, size, ok := DiskSpace(dir); ok {
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
		if free, size, ok := DiskSpace(dir); ok && IsLow(free, size) {
			low = append(low, fmt.Errorf("the disk of the %s: %s", name, DescribeSpace(dir, free, size)))
		}
	}
	return errors.Join(low...)
}

// IsLow reports whether a disk needs more free space. Both sizes are in bytes.
func IsLow(free, size uint64) bool {
	return free < leastFree || float64(free) < leastShare*float64(size)
}

// DescribeSpace returns the free space of the disk of dir in words.
func DescribeSpace(dir string, free, size uint64) string {
	return fmt.Sprintf("%.1f of %.1f GB are free at %s", float64(free)/1e9, float64(size)/1e9, dir)
}

// note remembers a failed write if err says that the disk is full. It logs the first of many.
func (d *disks) note(disk string, err error) {
	if !errors.Is(err, autopost.ErrNoSpace) {
		return
	}
	d.recorder.Refused(disk)
	d.mu.Lock()
	defer d.mu.Unlock()
	if time.Since(d.refused[disk]) >= refusedFor {
		d.log.Error("disk.full", "disk", disk, "remedy", "free space on this disk; waiting work then continues automatically: docs/operate/disks.md", "error", err)
	}
	d.refused[disk] = time.Now()
}

// full returns an error if a write failed recently because the disk is full.
func (d *disks) full(disk string) error {
	d.mu.Lock()
	ago := time.Since(d.refused[disk])
	d.mu.Unlock()
	if ago >= refusedFor {
		return nil
	}
	return fmt.Errorf("the disk of the %s was full %s ago", disk, ago.Round(time.Second))
}

// observe implements pg.Observe: it records the statement, and a full disk.
func (d *disks) observe(function string, took time.Duration, err error) {
	d.recorder.Query(function, took, err != nil)
	d.note(databaseDisk, err)
}

package filebus

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"

	"github.com/fsnotify/fsnotify"

	"autopost/internal/worker"
)

// watcher reports changes in folders. It is a hint: what it misses, the next scan finds.
type watcher struct {
	changed func(key string)
	log     *slog.Logger
	// files is nil if the system has no watches.
	files *fsnotify.Watcher

	mu sync.Mutex
	// keys are the sources of each watched folder.
	keys map[string]string
	full bool
	done sync.WaitGroup
}

func newWatcher(ctx context.Context, changed func(key string), log *slog.Logger) *watcher {
	w := &watcher{changed: changed, log: log, keys: map[string]string{}}
	files, err := fsnotify.NewWatcher()
	if err != nil {
		log.Warn("files.not_watched", "error", err)
		return w
	}
	w.files = files
	w.done.Go(worker.Task(ctx, w.run))
	return w
}

func (w *watcher) run() {
	for {
		select {
		case event, open := <-w.files.Events:
			if !open {
				return
			}
			w.note(event.Name)
		case _, open := <-w.files.Errors:
			if !open {
				return
			}
			w.noteAll() // events were lost
		}
	}
}

// note reports a change, unless it is of a file that the stage writes itself.
func (w *watcher) note(name string) {
	base := filepath.Base(name)
	if strings.HasPrefix(base, ".") || strings.HasSuffix(base, ".status.json") {
		return
	}
	w.mu.Lock()
	key, ok := w.keys[filepath.Dir(name)]
	w.mu.Unlock()
	if ok {
		w.changed(key)
	}
}

func (w *watcher) noteAll() {
	w.mu.Lock()
	keys := map[string]bool{}
	for _, key := range w.keys {
		keys[key] = true
	}
	w.mu.Unlock()
	for key := range keys {
		w.changed(key)
	}
}

// watch adds a folder of a source. A folder that cannot be watched is scanned at its interval.
func (w *watcher) watch(key, dir string) {
	if w == nil || w.files == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.keys[dir] == key {
		return
	}
	if err := w.files.Add(dir); err != nil {
		if !w.full && !errors.Is(err, fs.ErrNotExist) {
			w.full = true
			w.log.Warn("files.not_watched", "error", err, "remedy", "raise fs.inotify.max_user_watches; until then the folder is read at its interval")
		}
		return
	}
	w.keys[dir] = key
}

// forget drops folders of a source that are gone, so that a folder of the same name is watched again.
func (w *watcher) forget(key string, kept map[string]bool) {
	if w == nil || w.files == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for dir, owner := range w.keys {
		if owner == key && !kept[dir] {
			_ = w.files.Remove(dir) // a removed folder has no watch
			delete(w.keys, dir)
		}
	}
}

// Close ends the watches.
func (w *watcher) Close() {
	if w.files != nil {
		_ = w.files.Close()
		w.done.Wait()
	}
}

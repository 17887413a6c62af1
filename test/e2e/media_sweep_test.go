package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/media"
	"autopost/internal/monitor"
	"autopost/internal/pg"
	"autopost/internal/sim/feeds"
	"autopost/internal/testing/pgtest"
	"autopost/test/harness"
)

// The command removes unused media and keeps those of a live delivery.
func TestMediaSweep(t *testing.T) {
	t.Parallel()
	h, _, _ := newsroom(t)
	d := h.Serve()
	h.Push(d, "secret-cms", harness.Post("text", "Kept", "media", pictures(h, 1)))
	h.UntilTrue(`select count(*) = 2 from autopost.deliveries where status = 'sent'`)
	require.Zero(t, d.Stop())
	folder := h.Folder("data/media")
	objects := func() (n int) {
		require.NoError(t, filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
			if err == nil && !entry.IsDir() && !strings.HasSuffix(path, ".attrs") {
				n++
			}
			return err
		}))
		return n
	}
	require.Equal(t, 1, objects())

	// A picture that no post refers to; an object without a row; what a dead writer left.
	bucket, err := media.OpenStore(t.Context(), "file://"+folder)
	require.NoError(t, err)
	_, content, _ := feeds.Generate("photo-7.png")
	unused, err := bucket.Put(t.Context(), bytes.NewReader(content), "", media.Limits{})
	require.NoError(t, err)
	require.NoError(t, bucket.Close())
	h.Exec(`select autopost.put_media_origin('news', $1, $2, 'image/png', $3, 'image', 1, 1)`, unused.BlobRef, unused.OriginURL, unused.SizeBytes)
	h.Exec(`update autopost.media_origin set last_seen_at = now() - interval '31 days'`)
	stray := filepath.Join(folder, "sha256", "ab", "cd", "abcd"+strings.Repeat("0", 60))
	for _, path := range []string{stray, filepath.Join(folder, "tmp", "dead")} {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
		require.NoError(t, os.WriteFile(path, make([]byte, 100), 0o600))
	}
	orphans := func() string { return h.Run(nil, "media", "orphans", "--json").Stdout }
	require.JSONEq(t, `{"items":[{"what":"orphans","count":0,"bytes":0,"removed":false},{"what":"temporary","count":0,"bytes":0,"removed":false}]}`, orphans(), "they may yet be registered")
	old := time.Now().Add(-25 * time.Hour)
	for _, path := range []string{stray, filepath.Join(folder, "tmp", "dead")} {
		require.NoError(t, os.Chtimes(path, old, old))
	}
	require.JSONEq(t, `{"items":[{"what":"orphans","count":1,"bytes":100,"removed":false},{"what":"temporary","count":1,"bytes":100,"removed":false}]}`, orphans())
	report := func(removed bool) string {
		return fmt.Sprintf(`{"items":[{"what":"unreferenced","count":1,"bytes":%d,"removed":%t},{"what":"orphans","count":1,"bytes":100,"removed":%t},{"what":"temporary","count":1,"bytes":100,"removed":%t}]}`,
			len(content), removed, removed, removed)
	}
	require.JSONEq(t, report(false), h.Run(nil, "media", "sweep", "--dry-run", "--json").Stdout)
	require.Equal(t, 4, objects())
	require.JSONEq(t, report(true), h.Run(nil, "media", "sweep", "--json").Stdout)
	require.Equal(t, 1, objects())
	held := items[map[string]any](t, h.Run(nil, "media", "list", "--json").Stdout)
	require.Len(t, held, 1)
	require.Equal(t, 1.0, held[0]["messages"])
	h.Verified()
}

// faulty is the database's and the bucket's side of a sweep, dying at one step: before
// it, or after it and before its answer.
type faulty struct {
	monitor.MediaStore
	monitor.Bucket
	die   int
	after bool
	step  int
}

var errDied = errors.New("the daemon died")

func (f *faulty) at(do func() error) error {
	f.step++
	switch {
	case f.step > f.die, f.step == f.die && !f.after:
		return errDied
	}
	err := do()
	if f.step == f.die {
		return errDied
	}
	return err
}

func (f *faulty) ForgetMediaOrigin(ctx context.Context, workspace, ref string) (token, reason string, err error) {
	err = f.at(func() (err error) {
		token, reason, err = f.MediaStore.ForgetMediaOrigin(ctx, workspace, ref)
		return err
	})
	return token, reason, err
}

func (f *faulty) RemoveMediaOrigin(ctx context.Context, workspace, ref string) error {
	return f.at(func() error { return f.MediaStore.RemoveMediaOrigin(ctx, workspace, ref) })
}

func (f *faulty) BeginMediaRemoval(ctx context.Context, ref string) (token string, err error) {
	err = f.at(func() (err error) { token, err = f.MediaStore.BeginMediaRemoval(ctx, ref); return err })
	return token, err
}

func (f *faulty) EndMediaRemoval(ctx context.Context, ref, token string) error {
	return f.at(func() error { return f.MediaStore.EndMediaRemoval(ctx, ref, token) })
}

func (f *faulty) Remove(ctx context.Context, ref string) error {
	return f.at(func() error { return f.Bucket.Remove(ctx, ref) })
}

// A sweep dies at every step, before it and after it, while the same content is put
// again: a row without its object never stands, and the next sweep ends what was begun.
func TestSweepKilledAnywhereLeavesNothingDangling(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	db.Exec(`insert into autopost.workspaces (workspace_id) values ('w'), ('v')`)
	store, err := pg.Open(t.Context(), pg.Options{URL: db.URL("engine")})
	require.NoError(t, err)
	t.Cleanup(store.Close)
	dir := t.TempDir()
	bucket, err := media.OpenStore(t.Context(), "file://"+dir)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, bucket.Close()) })
	depository := media.WorkspaceStore{Store: bucket, Rows: store}
	put := func(workspace, content string) (media.Origin, error) {
		return depository.Put(t.Context(), workspace, strings.NewReader(content), "")
	}
	dangling := func() (found []string) {
		for _, ref := range pgtest.Column[string](db, `select distinct o.blob_ref from autopost.media_origin o where o.deleted_at is null`) {
			opened, err := bucket.Open(t.Context(), ref)
			if err != nil {
				found = append(found, ref)
				continue
			}
			require.NoError(t, opened.Close())
		}
		return found
	}
	sweep := func(f *faulty) error {
		f.MediaStore, f.Bucket = store, bucket
		all := monitor.MediaSweep{Store: f, Bucket: f}
		_, err := all.SweepUnreferenced(t.Context(), false)
		_, strayErr := all.SweepStrays(t.Context(), false)
		return errors.Join(err, strayErr)
	}
	deaths := 0
	for die := 1; ; die++ {
		alive := true
		for _, after := range []bool{false, true} {
			// Content of one workspace, content of two, and an object without a row.
			name := fmt.Sprint(die, after)
			for _, one := range [][2]string{{"w", "own " + name}, {"w", "shared " + name}, {"v", "shared " + name}} {
				_, err := put(one[0], one[1])
				require.NoError(t, err)
			}
			stray, err := bucket.Put(t.Context(), bytes.NewReader([]byte("stray "+name)), "", media.Limits{})
			require.NoError(t, err)
			old := time.Now().Add(-25 * time.Hour)
			require.NoError(t, os.Chtimes(strings.TrimPrefix(stray.OriginURL, "file://"), old, old))
			db.Exec(`update autopost.media_origin set last_seen_at = now() - interval '31 days'`)
			f := &faulty{die: die, after: after}
			if err := sweep(f); err != nil {
				require.ErrorIs(t, err, errDied)
				alive = false
				deaths++
			}
			require.Empty(t, dangling(), "died at step %d, after it: %t", die, after)

			// The same content comes again at once: it is accepted, or asked to retry later.
			again, err := put("v", "own "+name)
			require.True(t, err == nil || errors.Is(err, media.ErrBusy), "%v", err)
			require.Empty(t, dangling(), "put after a death at step %d, after it: %t", die, after)

			db.Exec(`update autopost.media_removals set begun_at = now() - interval '1 hour'`)
			require.NoError(t, sweep(&faulty{die: 1 << 30}))
			require.Empty(t, dangling())
			require.Zero(t, pgtest.Value[int](db, `select count(*)::int from autopost.media_removals`))
			want := 0
			if err == nil {
				want = 1
				opened, openErr := depository.Open(t.Context(), "v", again.BlobRef)
				require.NoError(t, openErr)
				require.NoError(t, opened.Close())
				db.Exec(`update autopost.media_origin set last_seen_at = now() - interval '31 days'`)
			}
			require.Equal(t, want, pgtest.Value[int](db, `select count(*)::int from autopost.media_origin`))
			require.NoError(t, sweep(&faulty{die: 1 << 30}))
			left := 0
			require.NoError(t, bucket.Objects(t.Context(), time.Now().Add(time.Hour), func(page []media.Object) error {
				left += len(page)
				return nil
			}))
			require.Zero(t, left, "nothing stays that nobody needs")
		}
		if alive {
			t.Logf("%d deaths at %d steps", deaths, die-1)
			return
		}
	}
}

func TestDoctorTriesTheMediaOrigin(t *testing.T) {
	t.Parallel()
	h := harness.New(t)
	origin := func(extra ...string) (ok bool, found, remedy string) {
		result := h.Run(extra, "doctor", "--json")
		for _, c := range items[diagnosed](t, result.Stdout) {
			if c.Check == "media origin" {
				return c.OK, c.Found, c.Remedy
			}
		}
		return false, "", ""
	}
	ok, found, _ := origin()
	require.True(t, ok, found)
	ok, found, remedy := origin("AUTOPOST_BLOB_URL=file:///proc/nowhere")
	require.False(t, ok)
	require.Contains(t, found, "/proc/nowhere")
	require.Contains(t, remedy, "AUTOPOST_BLOB_URL")
}

package filebus_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/ingest/filebus"
	"autopost/internal/media"
	"autopost/internal/pg"
	"autopost/internal/testing/pgtest"
	"autopost/internal/testing/posttest"
	"autopost/internal/testing/wait"
)

// noKeys has no signing keys.
type noKeys struct{}

func (noKeys) Credential(context.Context, string, string, autopost.Platform) (autopost.Secret, error) {
	return autopost.Secret{}, autopost.ErrNoCredential
}

// Each step of each write of the file exchange fails once. No job is published twice, and none is forgotten.
func TestEachStepOfTheExchangeFailsOnce(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	posttest.Workspace(db, "w")
	posttest.Channel(db, "w", "town", posttest.MaxParallel(100))
	root := t.TempDir()
	db.Exec(`select autopost.put_source('w', 'files', jsonb_build_object('kind', 'filebus', 'config_json', jsonb_build_object('root', $1::text, 'channels', '{"telegram": "town"}'::jsonb)), 'o', 'r', false)`, root)
	store, err := pg.Open(t.Context(), pg.Options{URL: db.URL("")})
	require.NoError(t, err)
	t.Cleanup(store.Close)
	contents, err := media.OpenStore(t.Context(), "file://"+t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { _ = contents.Close() })
	var failing atomic.Pointer[string]
	failed := 0
	stage, err := filebus.New(filebus.Config{Store: store, Contents: contents, Keys: noKeys{}, RunID: "run-1", Log: slog.New(slog.DiscardHandler)}.WithFault(func(step, name string) error {
		if at := failing.Load(); at != nil && *at == step+" "+filepath.Base(name) && failing.CompareAndSwap(at, nil) {
			failed++
			return errors.New("it fails once")
		}
		return nil
	}))
	require.NoError(t, err)
	pass := func() {
		db.Exec(`update autopost.pull_cursors set next_poll_at = '-infinity', leased_until = null, leased_by = null`)
		stage.RunOnce(t.Context())
	}
	write := func(name, content string) {
		target := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(target), 0o755))
		require.NoError(t, os.WriteFile(target, []byte(content), 0o644))
		past := time.Now().Add(-time.Minute)
		require.NoError(t, os.Chtimes(target, past, past))
	}
	jobs := 0
	for _, file := range []string{"telegram.status.json", "telegram.state.json"} {
		for _, step := range []string{"create", "write", "sync", "rename", "sync folder"} {
			job := fmt.Sprint("job-", jobs)
			jobs++
			write("output/"+job+".mp4", "\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00mp42isom"+strings.Repeat(job, 100))
			write("dist_artifacts/"+job+"/telegram.json", `{"job_id": "`+job+`", "platform": "telegram", "publish_config": {"title": "`+job+`"}, "artifact_pointers": {"video": "../../output/`+job+`.mp4"}}`)
			at := step + " " + file
			failing.Store(&at)
			pass()
			pass()
			write("inbox/approve-"+job+"-telegram-n1.json", `{"job_id": "`+job+`", "platform": "telegram", "approved": true, "nonce": "n1"}`)
			pass()
			db.Exec(`do $$
				declare c autopost.claimed_delivery;
				begin
					for c in select * from autopost.claim_deliveries('w', 'run-1', 10) loop
						perform autopost.start_call('w', c.delivery_id, c.claim_token), autopost.commit_outcome('w', c.delivery_id, c.claim_token, '{"ok": true, "provider_message_id": "7"}');
					end loop;
				end $$`)
			pass()
			pass()
			require.Nil(t, failing.Load(), "%s did not happen", at)
			require.FileExists(t, filepath.Join(root, "dist_artifacts", job, "telegram.state.json"), at)
			require.NoFileExists(t, filepath.Join(root, "dist_artifacts", job, "telegram.status.json"), at)
		}
	}
	require.Equal(t, jobs, failed)
	require.Equal(t, jobs, pgtest.Value[int](db, `select count(*)::int from autopost.publish_jobs where status = 'published' and files_at = updated_at`))
	require.Equal(t, jobs, pgtest.Value[int](db, `select count(*)::int from autopost.deliveries where status = 'sent' and attempt = 1`))
	require.Empty(t, pgtest.Column[string](db, `select v.invariant || v.sample::text from autopost.verify('w') v where v.violations > 0`))
}

// An artifact that was written a moment ago is read again soon, although nothing else happens in the folder.
func TestAYoungArtifactIsReadAgain(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	posttest.Workspace(db, "w")
	posttest.Channel(db, "w", "town")
	root := t.TempDir()
	db.Exec(`select autopost.put_source('w', 'files', jsonb_build_object('kind', 'filebus', 'config_json', jsonb_build_object('root', $1::text, 'channels', '{"telegram": "town"}'::jsonb)), 'o', 'r', false)`, root)
	store, err := pg.Open(t.Context(), pg.Options{URL: db.URL("")})
	require.NoError(t, err)
	t.Cleanup(store.Close)
	contents, err := media.OpenStore(t.Context(), "file://"+t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { _ = contents.Close() })
	stage, err := filebus.New(filebus.Config{Store: store, Contents: contents, Keys: noKeys{}, RunID: "run-1", Interval: time.Hour, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	for name, content := range map[string]string{
		"output/cat.mp4":                   "\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00mp42isom" + strings.Repeat("cat", 100),
		"dist_artifacts/cat/telegram.json": `{"job_id": "cat", "platform": "telegram", "publish_config": {"title": "cat"}, "artifact_pointers": {"video": "../../output/cat.mp4"}}`,
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(content), 0o600))
	}
	var running sync.WaitGroup
	ctx, end := context.WithCancel(t.Context())
	running.Go(func() { _ = stage.Run(ctx) })
	t.Cleanup(func() {
		end()
		running.Wait()
	})
	wait.Until(t, "the artifact is copied", func() bool {
		return pgtest.Value[bool](db, `select exists (select 1 from autopost.publish_jobs where error is null and artifacts ? 'video')`)
	})
}

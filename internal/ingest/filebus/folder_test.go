package filebus

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/testing/disktest"
)

func open(t *testing.T, root string) *folder {
	t.Helper()
	f, err := openFolder(root)
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// Each step of a write fails once. The old file stays or the new one is whole, nothing is left behind, and the next
// write succeeds.
func TestEachStepOfAWriteFailsOnce(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"create", "write", "sync", "rename", "sync folder"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			f := open(t, root)
			require.NoError(t, f.write("a.json", []byte("old")))
			failed := errors.New("it fails")
			f.fault = func(at, _ string) error {
				if at == step {
					return failed
				}
				return nil
			}
			require.ErrorIs(t, f.write("a.json", []byte("new")), failed)
			content, err := os.ReadFile(filepath.Join(root, "a.json"))
			require.NoError(t, err)
			require.Equal(t, map[bool]string{true: "new", false: "old"}[step == "sync folder"], string(content))
			f.fault = nil
			require.NoError(t, f.write("a.json", []byte("new")))
			entries, err := os.ReadDir(root)
			require.NoError(t, err)
			require.Len(t, entries, 1, "nothing else is there")
		})
	}
}

// A full disk leaves the old file, and the write succeeds when there is space again.
func TestAFullDiskLeavesTheOldFile(t *testing.T) {
	t.Parallel()
	disk := disktest.New(t, 2)
	f := open(t, disk.Dir)
	require.NoError(t, f.write("a.json", []byte("old")))
	disk.Fill()
	require.ErrorIs(t, f.write("a.json", []byte(strings.Repeat("new", 10000))), syscall.ENOSPC)
	content, _, err := f.read("a.json", maxNote)
	require.NoError(t, err)
	require.Equal(t, "old", string(content))
	disk.Free()
	require.NoError(t, f.write("a.json", []byte("new")))
}

// A name never leads out of the root or through a link, and only regular files are opened.
func TestHostileNamesAreRefused(t *testing.T) {
	t.Parallel()
	outside, root := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600))
	require.NoError(t, os.MkdirAll(filepath.Join(root, "jobs", "a"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, "jobs", "real"), []byte("real"), 0o600))
	require.NoError(t, os.Symlink(filepath.Join(outside, "secret"), filepath.Join(root, "jobs", "out")))
	require.NoError(t, os.Symlink("real", filepath.Join(root, "jobs", "in")))
	require.NoError(t, os.Symlink(outside, filepath.Join(root, "jobs", "folder")))
	require.NoError(t, syscall.Mkfifo(filepath.Join(root, "jobs", "fifo"), 0o600))
	f := open(t, root)
	for name, code := range map[string]string{
		"../secret": "outside_root", "jobs/../../secret": "outside_root", "/etc/passwd": "outside_root", "jobs/out": "symbolic_link", "jobs/in": "symbolic_link",
		"jobs/folder/secret": "symbolic_link", "jobs/fifo": "not_regular", "jobs/a": "not_regular", "jobs/real/x": "not_a_folder",
	} {
		_, _, err := f.read(name, maxNote)
		refused, ok := errors.AsType[*refusal](err)
		require.True(t, ok, "%s: %v", name, err)
		require.Equal(t, code, refused.code, name)
	}
	_, _, err := f.read("jobs/real", 3)
	require.Equal(t, "too_large", asRefusal(err).code)
	_, _, err = f.read("jobs/none", 3)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestDocumentsAreChecked(t *testing.T) {
	t.Parallel()
	for raw, damaged := range map[string]bool{
		`{"job_id": "a", "platform": "youtube", "status": "PUBLISHED", "published_at": "2026-02-08T12:30:00Z", "platform_post_id": "x"}`:            false,
		`{"job_id": "b", "platform": "youtube", "status": "PUBLISHED", "published_at": "2026-02-08T12:30:00Z", "platform_post_id": "x"}`:            true,
		`{"job_id": "a", "platform": "youtube", "status": "PUBLISHING", "published_at": "2026-02-08T12:30:00Z", "platform_post_id": "x"}`:           true,
		`{"job_id": "a", "platform": "youtube", "status": "PUBLISHED", "published_at": "today", "platform_post_id": "x"}`:                           true,
		`{"job_id": "a", "platform": "youtube", "status": "PUBLISHED", "published_at": "2026-02-08T12:30:00Z"}`:                                     true,
		`{"job_id": "a", "platform": "youtube", "status": "PUBLISHED", "published_at": "2026-02-08T12:30:00Z", "platform_post_id": "x"`:             true,
		`{"job_id": "a", "platform": "youtube", "status": "PUBLISHED", "published_at": "2026-02-08T12:30:00Z", "platform_post_id": "x` + `\u0000"}`: true,
		``: true, `[]`: true, `null`: true,
	} {
		_, reason := stateOf([]byte(raw), "a", "youtube")
		require.Equal(t, damaged, reason != "", raw)
	}
	p := payload{Pointers: map[string]json.RawMessage{"video": json.RawMessage(`"../../output/a.mp4"`), "thumbnail": json.RawMessage(`null`), "subtitles": json.RawMessage(`"../../../a"`)}}
	target, err := p.pointer("a", "dist", "video")
	require.NoError(t, err)
	require.Equal(t, "output/a.mp4", target)
	target, err = p.pointer("a", "dist", "thumbnail")
	require.NoError(t, err)
	require.Empty(t, target)
	_, err = p.pointer("a", "dist", "subtitles")
	require.Equal(t, "outside_root", asRefusal(err).code)
	for name, code := range map[string]string{
		"approve-a-b-youtube-n1.json": "", "approve-a-b-youtube-n2.json": "name_mismatch", "approve-a-youtube-n1.json": "name_mismatch",
	} {
		_, err := approvalOf([]byte(`{"job_id": "a-b", "platform": "youtube", "approved": true, "nonce": "n1"}`), name)
		if code == "" {
			require.NoError(t, err)
			continue
		}
		require.Equal(t, code, asRefusal(err).code, name)
	}
}

// A signature covers all that an approval says. The vector was computed by openssl.
func TestApprovalsAreSigned(t *testing.T) {
	t.Parallel()
	yes := true
	a := approval{JobID: "demo", Platform: "youtube", Approved: &yes, PayloadDigest: "sha256:00", Nonce: "n1", ExpiresAt: "2026-12-01T00:00:00Z"}
	require.Equal(t, "demo\nyoutube\ntrue\nsha256:00\nn1\n2026-12-01T00:00:00Z", a.signed())
	key := autopost.NewSecret("whsec_" + base64.StdEncoding.EncodeToString([]byte("a key of a test")))
	a.Signature = "EBdwqXfpLmXMREHo6DG7VWNBkQwDLm72aybSEvOAVXE="
	require.True(t, goodSignature(a, key))
	for _, change := range []func(*approval){
		func(a *approval) { a.JobID = "other" }, func(a *approval) { a.Platform = "x" }, func(a *approval) { no := false; a.Approved = &no },
		func(a *approval) { a.PayloadDigest = "sha256:01" }, func(a *approval) { a.Nonce = "n2" }, func(a *approval) { a.ExpiresAt = "" }, func(a *approval) { a.Signature = "" },
	} {
		changed := a
		change(&changed)
		require.False(t, goodSignature(changed, key))
	}
	require.False(t, goodSignature(a, autopost.NewSecret("whsec_b3RoZXI=")))
}

package media_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/media"
	"autopost/internal/testing/disktest"
)

// everyFile returns the files below a folder.
func everyFile(t *testing.T, dir string) (found []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			found = append(found, path)
		}
		return err
	}))
	return found
}

// A folder on a full disk refuses content with ErrNoSpace and keeps no part of it. Stored content can still be read and
// stored again. After the operator frees disk space, it accepts content.
func TestFolderOnAFullDisk(t *testing.T) {
	disk := disktest.New(t, 8)
	dir := filepath.Join(disk.Dir, "media")
	store, err := media.OpenStore(t.Context(), "file://"+dir)
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	put := func(content string) (media.Origin, error) {
		return store.Put(t.Context(), strings.NewReader(content), autopost.MediaFile, media.Limits{})
	}
	before, err := put("before")
	require.NoError(t, err)
	held := everyFile(t, dir)

	_, err = put(strings.Repeat("larger than the disk ", 1<<20))
	require.ErrorIs(t, err, autopost.ErrNoSpace)
	require.Equal(t, held, everyFile(t, dir))

	disk.Fill()
	_, err = put("while")
	require.ErrorIs(t, err, autopost.ErrNoSpace)
	require.ErrorIs(t, store.Writable(t.Context()), autopost.ErrNoSpace)
	require.Equal(t, held, everyFile(t, dir))
	opened, err := store.Open(t.Context(), before.BlobRef)
	require.NoError(t, err)
	require.NoError(t, opened.Close())

	disk.Free()
	_, err = put("while")
	require.NoError(t, err)
	require.NoError(t, store.Writable(t.Context()))
}

// A full disk during a download is not a failure of the source.
func TestDownloadOntoAFullDisk(t *testing.T) {
	disk := disktest.New(t, 4)
	store, err := media.OpenStore(t.Context(), "file://"+filepath.Join(disk.Dir, "media"))
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(bytes.Repeat([]byte("content "), 1<<20))
	}))
	defer server.Close()
	fetcher := media.Fetcher{Store: store, Doer: server.Client()}
	_, failed := fetcher.Fetch(t.Context(), server.URL, autopost.MediaFile)
	require.NotNil(t, failed)
	require.Equal(t, media.CodeNoSpace, failed.Code)
	require.Equal(t, autopost.Transient, failed.Category)
	require.Contains(t, failed.Message, "no space left on the disk")
}

// A bucket with a full disk or a used-up quota returns ErrNoSpace and calls Full.
func TestFullBucket(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	t.Setenv("AWS_MAX_ATTEMPTS", "1")
	for code, status := range map[string]int{"XMinioStorageFull": 507, "XMinioAdminBucketQuotaExceeded": 400, "QuotaExceeded": 403} {
		t.Run(code, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(status)
				_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code><Message>no</Message></Error>", code)
			}))
			defer server.Close()
			store, err := media.OpenStore(t.Context(), "s3://media?region=x&endpoint="+server.URL)
			require.NoError(t, err)
			defer func() { require.NoError(t, store.Close()) }()
			var reported error
			store.Full = func(err error) { reported = err }
			_, err = store.Put(t.Context(), strings.NewReader("content"), autopost.MediaFile, media.Limits{})
			require.ErrorIs(t, err, autopost.ErrNoSpace)
			require.ErrorIs(t, reported, autopost.ErrNoSpace)
		})
	}
}

package media_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"
	"gocloud.dev/blob"

	"autopost"
	"autopost/internal/media"
	"autopost/internal/testing/s3test"
)

// onEachStore runs a test on a folder, on a real S3 server, and on that server through the client for Google Cloud
// Storage. plain is the same bucket without the Store.
func onEachStore(t *testing.T, test func(t *testing.T, store *media.Store, plain *blob.Bucket)) {
	t.Helper()
	s3test.Sign(t)
	objects, _ := s3test.Start(t)
	google := strings.Replace(objects, "s3://", "gs://", 1) + "&prefix=google/"
	// The whole bucket comes before its parts, in which things are left.
	for _, place := range [][2]string{{"folder", "file://" + t.TempDir()}, {"s3", objects}, {"s3 below a prefix", objects + "&prefix=below/"}, {"gs", google}} {
		t.Run(place[0], func(t *testing.T) {
			url := place[1]
			store, err := media.OpenStore(t.Context(), url)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, store.Close()) })
			if rest, bucket := strings.CutPrefix(url, "file:"); !bucket {
				url = "s3" + rest[2:] + "&use_path_style=true"
			} else {
				url += "?no_tmp_dir=true"
			}
			plain, err := blob.OpenBucket(t.Context(), url)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, plain.Close()) })
			test(t, store, plain)
		})
	}
}

// keys returns the keys of all objects of a bucket.
func keys(t *testing.T, bucket *blob.Bucket) []string {
	t.Helper()
	var found []string
	list := bucket.List(nil)
	for {
		o, err := list.Next(t.Context())
		if errors.Is(err, io.EOF) {
			return found
		}
		require.NoError(t, err)
		found = append(found, o.Key)
	}
}

func TestStoreReturnsTheStoredContent(t *testing.T) {
	onEachStore(t, func(t *testing.T, store *media.Store, plain *blob.Bucket) {
		// Longer than two parts of an upload, and no multiple of anything.
		content := mp4Of(12_345_678)
		var origin media.Origin
		var group sync.WaitGroup
		failed := make([]error, 4)
		for i := range failed {
			group.Go(func() {
				stored, err := store.Put(context.Background(), bytes.NewReader(content), autopost.MediaVideo, media.Limits{})
				failed[i] = err
				if i == 0 {
					origin = stored
				}
			})
		}
		group.Wait()
		require.NoError(t, errors.Join(failed...))
		require.Len(t, keys(t, plain), 1, "the same content at once is one object, and nothing temporary stays")

		opened, err := store.Open(t.Context(), origin.BlobRef)
		require.NoError(t, err)
		require.Equal(t, int64(len(content)), opened.Size)
		require.Equal(t, "video/mp4", opened.ContentType)
		got, err := io.ReadAll(opened)
		require.NoError(t, err)
		require.NoError(t, opened.Close())
		require.True(t, bytes.Equal(content, got))

		whole, err := store.Has(t.Context(), origin.BlobRef, origin.SizeBytes)
		require.NoError(t, err)
		require.True(t, whole)
		require.NoError(t, plain.WriteAll(t.Context(), keys(t, plain)[0], content[:100], nil))
		whole, err = store.Has(t.Context(), origin.BlobRef, origin.SizeBytes)
		require.NoError(t, err)
		require.False(t, whole, "damaged from outside")
		_, err = store.Put(t.Context(), bytes.NewReader(content), autopost.MediaVideo, media.Limits{})
		require.NoError(t, err)
		whole, err = store.Has(t.Context(), origin.BlobRef, origin.SizeBytes)
		require.NoError(t, err)
		require.True(t, whole, "and repaired")

		require.NoError(t, store.Remove(t.Context(), origin.BlobRef))
		require.NoError(t, store.Remove(t.Context(), origin.BlobRef), "what is gone may go")
		_, err = store.Open(t.Context(), origin.BlobRef)
		require.ErrorIs(t, err, autopost.ErrNoOrigin)
		require.Empty(t, keys(t, plain))
	})
}

func TestFailedPutLeavesNothing(t *testing.T) {
	onEachStore(t, func(t *testing.T, store *media.Store, plain *blob.Bucket) {
		broken := io.MultiReader(bytes.NewReader(mp4Of(6<<20)), iotest.ErrReader(io.ErrUnexpectedEOF))
		_, err := store.Put(t.Context(), broken, autopost.MediaVideo, media.Limits{})
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		_, err = store.Put(t.Context(), bytes.NewReader(mp4Of(6<<20)), autopost.MediaVideo, media.Limits{VideoBytes: 5 << 20})
		var rejection *media.Rejection
		require.ErrorAs(t, err, &rejection)
		cut, cancel := context.WithCancel(t.Context())
		_, err = store.Put(cut, io.MultiReader(bytes.NewReader(mp4Of(6<<20)), reading(func() { cancel() })), autopost.MediaVideo, media.Limits{})
		require.Error(t, err)
		require.Empty(t, keys(t, plain))
	})
}

// reading is a reader that calls itself at the first read and then ends.
type reading func()

func (r reading) Read([]byte) (int, error) {
	r()
	return 0, io.EOF
}

func TestTemporaryObjectsAreRemovedByAge(t *testing.T) {
	onEachStore(t, func(t *testing.T, store *media.Store, plain *blob.Bucket) {
		origin, err := store.Put(t.Context(), bytes.NewReader(mp4Of(50)), autopost.MediaVideo, media.Limits{})
		require.NoError(t, err)
		require.NoError(t, plain.WriteAll(t.Context(), "tmp/abandoned", make([]byte, 1000), nil))
		var client *s3.Client
		if plain.As(&client) {
			// An upload in parts whose writer died.
			key := strings.TrimSuffix(keys(t, plain)[1], "abandoned") + "unfinished"
			_, below, _ := strings.Cut(origin.OriginURL, "://media/")
			key = below[:strings.Index(below, "sha256/")] + key
			_, err := client.CreateMultipartUpload(t.Context(), &s3.CreateMultipartUploadInput{Bucket: aws.String("media"), Key: &key})
			require.NoError(t, err)
		} else {
			dir := strings.TrimPrefix(origin.OriginURL[:strings.Index(origin.OriginURL, "/sha256/")], "file://")
			require.NoError(t, os.WriteFile(filepath.Join(dir, "tmp", "dead.attrs"), []byte("{}"), 0o600))
		}
		hour := time.Now().Add(-time.Hour)
		count, size, err := store.Temporary(t.Context(), hour, false)
		require.NoError(t, err)
		require.Zero(t, count, "they may still be written")
		require.Zero(t, size)
		soon := time.Now().Add(time.Hour)
		count, size, err = store.Temporary(t.Context(), soon, true)
		require.NoError(t, err)
		require.Equal(t, 1, count)
		require.EqualValues(t, 1000, size)
		require.Len(t, keys(t, plain), 2, "a dry run takes nothing away")
		count, size, err = store.Temporary(t.Context(), soon, false)
		require.NoError(t, err)
		require.Equal(t, 2, count, "with what a listing does not show")
		require.EqualValues(t, 1000, size)
		require.Len(t, keys(t, plain), 1)
		count, _, err = store.Temporary(t.Context(), soon, false)
		require.NoError(t, err)
		require.Zero(t, count)
	})
}

func TestObjectsAreListedByAge(t *testing.T) {
	onEachStore(t, func(t *testing.T, store *media.Store, plain *blob.Bucket) {
		var want []media.Object
		for i := range 3 {
			origin, err := store.Put(t.Context(), bytes.NewReader(mp4Of(50+i)), autopost.MediaVideo, media.Limits{})
			require.NoError(t, err)
			want = append(want, media.Object{BlobRef: origin.BlobRef, SizeBytes: origin.SizeBytes})
		}
		require.NoError(t, plain.WriteAll(t.Context(), "sha256/ab/cd/unknown-object", []byte("x"), nil))
		require.NoError(t, plain.WriteAll(t.Context(), "notes.txt", []byte("x"), nil))
		list := func(then time.Time) (found []media.Object) {
			require.NoError(t, store.Objects(t.Context(), then, func(page []media.Object) error {
				found = append(found, page...)
				return nil
			}))
			return found
		}
		require.Empty(t, list(time.Now().Add(-time.Hour)))
		require.ElementsMatch(t, want, list(time.Now().Add(time.Hour)), "what is not ours is not content")
		stop := errors.New("enough")
		require.ErrorIs(t, store.Objects(t.Context(), time.Now().Add(time.Hour), func([]media.Object) error { return stop }), stop)
	})
}

func TestProbeNamesTheFailedStep(t *testing.T) {
	onEachStore(t, func(t *testing.T, store *media.Store, plain *blob.Bucket) {
		require.NoError(t, store.Writable(t.Context()))
		require.NoError(t, store.Probe(t.Context()))
		require.Empty(t, keys(t, plain), "it leaves nothing")
	})
	objects, _ := s3test.Start(t)
	missing, err := media.OpenStore(t.Context(), strings.Replace(objects, "//media", "//nowhere", 1))
	require.NoError(t, err)
	require.ErrorContains(t, missing.Probe(t.Context()), "write: ")
	require.Error(t, missing.Writable(t.Context()))
}

func TestOpenStoreRefusesInvalidURLs(t *testing.T) {
	for url, says := range map[string]string{
		"file:///tmp/x?prefix=y": "name the folder itself", "ftp://h/x": "no driver", "s3://b?endpont=x": "endpont", "%": "the URL must be valid",
	} {
		_, err := media.OpenStore(t.Context(), url)
		require.ErrorContains(t, err, says)
	}
}

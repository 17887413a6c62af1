package media

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"gocloud.dev/blob"
	_ "gocloud.dev/blob/azureblob" // azblob:// origins
	_ "gocloud.dev/blob/fileblob"  // file:// origins
	_ "gocloud.dev/blob/memblob"   // mem:// origins
	_ "gocloud.dev/blob/s3blob"    // s3:// origins

	"autopost"
)

// backend holds the differences between kinds of buckets.
type backend interface {
	// write streams a temporary object. A failed write leaves nothing.
	write(ctx context.Context, key, contentType string, body io.Reader) error
	// publish gives a complete temporary object its final name. It replaces an object of that name. Readers never see a
	// part of an object.
	publish(ctx context.Context, temporary, key string) error
	// leftovers removes what interrupted writes left before then, if it is not in the listing of the bucket. It returns
	// how many it removed.
	leftovers(ctx context.Context, then time.Time) (int, error)
}

// OpenStore opens the media store at a URL of gocloud.dev/blob: file:///folder, which is created if missing,
// s3://bucket?region=…&endpoint=…, gs://bucket (see openGoogle), azblob://container or mem://. All objects have the prefix
// of prefix=….
func OpenStore(ctx context.Context, rawURL string) (*Store, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, errors.New("open media store: the URL must be valid; use file:///folder or s3://bucket?region=…")
	}
	query := u.Query()
	prefix := query.Get("prefix")
	switch u.Scheme {
	case "file":
		if prefix != "" {
			return nil, errors.New("open media store: a file URL must have no prefix; name the folder itself")
		}
		query.Set("create_dir", "true")
		// Other users of the machine must not read media.
		query.Set("dir_file_mode", "0700")
		// Temporary files must be on the file system of the bucket for the rename.
		query.Set("no_tmp_dir", "true")
	case "s3":
		// Servers other than Amazon's rarely support host names per bucket.
		if query.Has("endpoint") && !query.Has("use_path_style") {
			query.Set("use_path_style", "true")
		}
	}
	u.RawQuery = query.Encode()
	bucket, err := openBucket(ctx, u)
	if err != nil {
		return nil, fmt.Errorf("open media store %s://%s%s: %w", u.Scheme, u.Host, u.Path, err)
	}
	store := &Store{bucket: bucket, base: u.Scheme + "://" + u.Host + strings.TrimSuffix(u.Path, "/") + "/" + prefix}
	switch u.Scheme {
	case "file":
		store.backend = folder{copying: copying{bucket}, root: u.Path}
	case "s3", "gs":
		if store.backend, err = newS3Bucket(bucket, u.Host, query); err != nil {
			return nil, errors.Join(fmt.Errorf("open media store %s://%s: %w", u.Scheme, u.Host, err), bucket.Close())
		}
		store.maxObject = largestCopy
	default:
		store.backend = copying{bucket}
	}
	return store, nil
}

func openBucket(ctx context.Context, u *url.URL) (*blob.Bucket, error) {
	switch u.Scheme {
	case "gs":
		return openGoogle(ctx, u.Host, u.Query())
	case "s3":
		return openS3(ctx, u)
	}
	return blob.OpenBucket(ctx, u.String())
}

// copying publishes by a copy inside the bucket, which is atomic in object stores.
type copying struct{ bucket *blob.Bucket }

const (
	copyBuffer = 64 << 10
	// largestCopy is the largest object that S3 copies in one request, in bytes.
	largestCopy = 5 << 30
	// partBytes and partsAtOnce limit the memory of a multipart upload. S3 requires parts of at least 5 MiB.
	partBytes   = 5 << 20
	partsAtOnce = 1
)

func (c copying) write(ctx context.Context, key, contentType string, body io.Reader) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := c.bucket.NewWriter(ctx, key, &blob.WriterOptions{ContentType: contentType, BufferSize: partBytes, MaxConcurrency: partsAtOnce})
	if err != nil {
		return err
	}
	// The struct hides io.ReaderFrom of the writer, so that the fixed buffer is used.
	if _, err := io.CopyBuffer(struct{ io.Writer }{w}, body, make([]byte, copyBuffer)); err != nil {
		cancel() // Close discards a write whose context ended
		_ = w.Close()
		return err
	}
	return w.Close()
}

func (c copying) publish(ctx context.Context, temporary, key string) error {
	return c.bucket.Copy(ctx, key, temporary, nil)
}

func (copying) leftovers(context.Context, time.Time) (int, error) { return 0, nil }

// fullCodes are the error codes of MinIO and Ceph for a full disk and a used-up quota.
var fullCodes = []string{"XMinioStorageFull", "XMinioAdminBucketQuotaExceeded", "QuotaExceeded"}

// markFull adds autopost.ErrNoSpace to an error of a full disk or a used-up quota, and calls Full.
func (s *Store) markFull(err error) error {
	var refused interface{ ErrorCode() string }
	full := errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) ||
		errors.As(err, &refused) && slices.Contains(fullCodes, refused.ErrorCode())
	if !full || errors.Is(err, autopost.ErrNoSpace) {
		return err
	}
	err = fmt.Errorf("%w: %w", autopost.ErrNoSpace, err)
	if s.Full != nil {
		s.Full(err)
	}
	return err
}

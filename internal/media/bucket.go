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

// depot is what differs between kinds of buckets.
type depot interface {
	// write streams a temporary object; of what fails, nothing stays.
	write(ctx context.Context, key, contentType string, body io.Reader) error
	// publish gives a whole temporary object its final name. An object of that name
	// is replaced, and is never seen in part.
	publish(ctx context.Context, temporary, key string) error
	// leftovers removes what writes that died before then left where listing the
	// bucket does not show it, and returns how many.
	leftovers(ctx context.Context, then time.Time) (int, error)
}

// OpenStore opens the origin at a URL of gocloud.dev/blob: file:///folder, which is
// made if it is missing, s3://bucket?region=…&endpoint=…, gs://bucket (see openGoogle),
// azblob://container or mem://. A prefix=… puts all objects below it.
func OpenStore(ctx context.Context, rawURL string) (*Store, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, errors.New("open media origin: the URL cannot be read; use file:///folder or s3://bucket?region=…")
	}
	query := u.Query()
	prefix := query.Get("prefix")
	switch u.Scheme {
	case "file":
		if prefix != "" {
			return nil, errors.New("open media origin: a file URL takes no prefix; name the folder itself")
		}
		query.Set("create_dir", "true")
		// Temporary files must lie on the bucket's own file system to be renamed.
		query.Set("no_tmp_dir", "true")
	case "s3":
		// What is not Amazon's is rarely found by a host name for each bucket.
		if query.Has("endpoint") && !query.Has("use_path_style") {
			query.Set("use_path_style", "true")
		}
	}
	u.RawQuery = query.Encode()
	bucket, err := openBucket(ctx, u)
	if err != nil {
		return nil, fmt.Errorf("open media origin %s://%s%s: %w", u.Scheme, u.Host, u.Path, err)
	}
	store := &Store{bucket: bucket, base: u.Scheme + "://" + u.Host + strings.TrimSuffix(u.Path, "/") + "/" + prefix}
	switch u.Scheme {
	case "file":
		store.depot = folder{copying: copying{bucket}, root: u.Path}
	case "s3", "gs":
		if store.depot, err = newS3Bucket(bucket, u.Host, query); err != nil {
			return nil, errors.Join(fmt.Errorf("open media origin %s://%s: %w", u.Scheme, u.Host, err), bucket.Close())
		}
		store.most = largestCopy
	default:
		store.depot = copying{bucket}
	}
	return store, nil
}

func openBucket(ctx context.Context, u *url.URL) (*blob.Bucket, error) {
	if u.Scheme == "gs" {
		return openGoogle(ctx, u.Host, u.Query())
	}
	return blob.OpenBucket(ctx, u.String())
}

// copying publishes by a copy inside the bucket, which object stores make in one piece.
type copying struct{ bucket *blob.Bucket }

const (
	copyBuffer = 64 << 10
	// largestCopy is the most that S3 copies in one request.
	largestCopy = 5 << 30
	// partBytes and partsAtOnce bound what an upload in parts holds in memory; 5 MiB is
	// the least that S3 takes.
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
	// The writer is hidden, so the fixed buffer is used.
	if _, err := io.CopyBuffer(struct{ io.Writer }{w}, body, make([]byte, copyBuffer)); err != nil {
		cancel() // a write whose context ended is thrown away by Close
		_ = w.Close()
		return err
	}
	return w.Close()
}

func (c copying) publish(ctx context.Context, temporary, key string) error {
	return c.bucket.Copy(ctx, key, temporary, nil)
}

func (copying) leftovers(context.Context, time.Time) (int, error) { return 0, nil }

// fullCodes are those of S3's interface for a full disk, and for a quota that is used up: of MinIO's and of Ceph's.
var fullCodes = []string{"XMinioStorageFull", "XMinioAdminBucketQuotaExceeded", "QuotaExceeded"}

// roomless marks an error by which a bucket says that its disk, or what we may use of it, is full.
func (s *Store) roomless(err error) error {
	var refused interface{ ErrorCode() string }
	full := errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) ||
		errors.As(err, &refused) && slices.Contains(fullCodes, refused.ErrorCode())
	if !full || errors.Is(err, autopost.ErrNoRoom) {
		return err
	}
	err = fmt.Errorf("%w: %w", autopost.ErrNoRoom, err)
	if s.Full != nil {
		s.Full(err)
	}
	return err
}

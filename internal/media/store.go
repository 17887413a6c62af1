package media

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"

	"github.com/gabriel-vasile/mimetype"
	"github.com/google/uuid"
	"gocloud.dev/blob"
	_ "gocloud.dev/blob/fileblob" // file:// origins
	_ "gocloud.dev/blob/memblob"  // mem:// origins
	"gocloud.dev/gcerrors"
	"golang.org/x/sync/singleflight"

	"autopost"
)

const (
	refPrefix  = "sha256:"
	copyBuffer = 64 << 10
)

// Store is the media origin: a bucket of objects named by the digest of their
// content, shared by all workspaces. It is safe for concurrent use, and several
// daemons may share one bucket.
type Store struct {
	bucket *blob.Bucket
	base   string
	// publishing makes one of those who store the same content at once write its
	// object: a folder's bucket reads the attributes of one that is being written
	// as cut off.
	publishing singleflight.Group
}

// Origin describes content in the origin: a row of autopost.media_origin.
type Origin struct {
	// BlobRef is "sha256:" and the lower-case hexadecimal digest.
	BlobRef string
	// OriginURL is the object's own address in the bucket; it holds no credential.
	OriginURL string
	// SHA256 is the digest in lower-case hexadecimal.
	SHA256 string
	// ContentType was told from the content.
	ContentType string
	// SizeBytes is exact.
	SizeBytes int64
	Kind      autopost.MediaKind
	// Width and Height are a picture's, in pixels; 0 for anything else.
	Width, Height int
}

// OpenStore opens the origin at a file:// or mem:// URL. The folder of a file
// URL is made if it is missing.
func OpenStore(ctx context.Context, rawURL string) (*Store, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, errors.New("open media origin: the URL cannot be read; use file:///folder")
	}
	if u.Scheme == "file" {
		query := u.Query()
		query.Set("create_dir", "true")
		// Temporary files must lie on the bucket's own file system to be renamed.
		query.Set("no_tmp_dir", "true")
		u.RawQuery = query.Encode()
	}
	bucket, err := blob.OpenBucket(ctx, u.String())
	if err != nil {
		return nil, fmt.Errorf("open media origin %s://%s%s: %w", u.Scheme, u.Host, u.Path, err)
	}
	base := u.Scheme + "://" + u.Host + strings.TrimSuffix(u.Path, "/") + "/"
	return &Store{bucket: bucket, base: base}, nil
}

// Close releases the bucket.
func (s *Store) Close() error { return s.bucket.Close() }

// Ready reports whether the origin can be reached.
func (s *Store) Ready(ctx context.Context) error {
	ok, err := s.bucket.IsAccessible(ctx)
	if err == nil && !ok {
		err = errors.New("the bucket does not exist")
	}
	if err != nil {
		return fmt.Errorf("reach media origin: %w", err)
	}
	return nil
}

// Put stores what r yields and returns where it is. Storing the same content
// again is harmless and gives the same answer. A *Rejection says that the
// content itself cannot be taken; any other error is r's or the bucket's.
//
// The content is written to a temporary object while it is hashed, checked, and
// only then published under its digest, so an object that can be found by its
// digest is whole.
func (s *Store) Put(ctx context.Context, r io.Reader, kind autopost.MediaKind, limits Limits) (Origin, error) {
	head, err := io.ReadAll(io.LimitReader(r, sniffBytes))
	if err != nil {
		return Origin{}, fmt.Errorf("read media: %w", err)
	}
	contentType, err := sniff(head, kind)
	if err != nil {
		return Origin{}, err
	}

	temporary := "tmp/" + uuid.NewString()
	defer s.discard(ctx, temporary)
	stored := Origin{ContentType: contentType, Kind: kind}
	body := io.MultiReader(bytes.NewReader(head), r)
	if err := s.writeTemporary(ctx, temporary, body, limits.of(kind), &stored); err != nil {
		return Origin{}, err
	}
	if strings.HasPrefix(contentType, "image/") && kind != autopost.MediaFile {
		if err := s.measureObject(ctx, temporary, &stored); err != nil {
			return Origin{}, err
		}
	}
	_, err, _ = s.publishing.Do(stored.SHA256, func() (any, error) { return nil, s.publish(ctx, temporary, stored) })
	if err != nil {
		return Origin{}, fmt.Errorf("publish media %s: %w", stored.BlobRef, err)
	}
	return stored, nil
}

// writeTemporary streams body to key, hashing and counting it into stored.
func (s *Store) writeTemporary(ctx context.Context, key string, body io.Reader, limit int64, stored *Origin) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := s.bucket.NewWriter(ctx, key, &blob.WriterOptions{ContentType: stored.ContentType})
	if err != nil {
		return fmt.Errorf("write media: %w", err)
	}
	digest := sha256.New()
	// The writer is hidden behind a MultiWriter, so the fixed buffer is used.
	size, err := io.CopyBuffer(io.MultiWriter(w, digest), io.LimitReader(body, limit+1), make([]byte, copyBuffer))
	if err == nil && size > limit {
		err = tooLarge(stored.Kind, limit)
	}
	if err != nil {
		cancel() // a write whose context ended is thrown away by Close
		_ = w.Close()
		return fmt.Errorf("write media: %w", err)
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("write media: %w", err)
	}
	stored.SizeBytes = size
	stored.SHA256 = hex.EncodeToString(digest.Sum(nil))
	stored.BlobRef = refPrefix + stored.SHA256
	stored.OriginURL = s.base + objectKey(stored.SHA256)
	return nil
}

func (s *Store) measureObject(ctx context.Context, key string, stored *Origin) error {
	r, err := s.bucket.NewReader(ctx, key, nil)
	if err != nil {
		return fmt.Errorf("read media back: %w", err)
	}
	defer func() { _ = r.Close() }()
	stored.Width, stored.Height, err = measure(r, stored.ContentType)
	return err
}

// publish gives the temporary object its final name, unless it is there already
// and whole: an object of another size was damaged outside and is replaced.
func (s *Store) publish(ctx context.Context, temporary string, stored Origin) error {
	key := objectKey(stored.SHA256)
	attributes, err := s.bucket.Attributes(ctx, key)
	if err == nil && attributes.Size == stored.SizeBytes {
		return nil
	}
	if err := s.bucket.Copy(ctx, key, temporary, nil); err != nil {
		return err
	}
	return s.seal(ctx, key, stored.SizeBytes)
}

// seal checks the published size and, where the bucket is a folder, forces the
// content to disk: the database will soon say for good that it is there.
func (s *Store) seal(ctx context.Context, key string, size int64) error {
	r, err := s.bucket.NewReader(ctx, key, &blob.ReaderOptions{BeforeRead: syncFile})
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	if r.Size() != size {
		return fmt.Errorf("object has %d bytes instead of %d", r.Size(), size)
	}
	return nil
}

func syncFile(as func(any) bool) error {
	var content *os.File
	if !as(&content) {
		return nil
	}
	if err := content.Sync(); err != nil {
		return err
	}
	// The driver keeps the content type in a second file beside the first.
	sidecar, err := os.Open(content.Name() + ".attrs")
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(sidecar.Sync(), sidecar.Close())
}

// discard removes a temporary object even when ctx has ended meanwhile.
func (s *Store) discard(ctx context.Context, key string) {
	_ = s.bucket.Delete(context.WithoutCancel(ctx), key)
}

// Open streams the content of blobRef. It returns autopost.ErrNoOrigin when the
// origin does not hold it. The caller closes it.
func (s *Store) Open(ctx context.Context, blobRef string) (*autopost.Content, error) {
	digest, err := parseRef(blobRef)
	if err != nil {
		return nil, err
	}
	r, err := s.bucket.NewReader(ctx, objectKey(digest), nil)
	if gcerrors.Code(err) == gcerrors.NotFound {
		return nil, fmt.Errorf("open %s: %w", blobRef, autopost.ErrNoOrigin)
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", blobRef, err)
	}
	extension := ""
	if known := mimetype.Lookup(r.ContentType()); known != nil {
		extension = known.Extension()
	}
	return &autopost.Content{
		ReadSeekCloser: r,
		Size:           r.Size(),
		ContentType:    r.ContentType(),
		Filename:       digest[:16] + extension,
	}, nil
}

func parseRef(blobRef string) (digest string, err error) {
	digest, ok := strings.CutPrefix(blobRef, refPrefix)
	raw, err := hex.DecodeString(digest)
	if !ok || err != nil || len(raw) != sha256.Size || strings.ToLower(digest) != digest {
		return "", fmt.Errorf("blob_ref %q is not %s and 64 lower-case hexadecimal digits", blobRef, refPrefix)
	}
	return digest, nil
}

// objectKey spreads objects over folders that stay small.
func objectKey(digest string) string {
	return "sha256/" + digest[:2] + "/" + digest[2:4] + "/" + digest
}

package media

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"

	"github.com/gabriel-vasile/mimetype"
	"github.com/google/uuid"
	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"
	"golang.org/x/sync/singleflight"

	"autopost"
)

const (
	refPrefix = "sha256:"
	// objectFolder and temporaryFolder are where objects stand for good, and while
	// they are written.
	objectFolder    = "sha256/"
	temporaryFolder = "tmp/"
)

// Store is the media origin: a bucket of objects named by the digest of their
// content, shared by all workspaces. It is safe for concurrent use, and several
// daemons may share one bucket.
type Store struct {
	// Full, if there is one, is told of each write that the disk had no room for. To be set before the first.
	Full func(error)

	bucket *blob.Bucket
	// base is the bucket's address, with a slash at its end and without a credential.
	base  string
	depot depot
	// most is the largest object that can be published, in bytes; 0 is no limit.
	most int64
	// publishing makes one of those who store the same content at once write its object.
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

// Close releases the bucket.
func (s *Store) Close() error { return s.bucket.Close() }

// Writable writes a small object and deletes it.
func (s *Store) Writable(ctx context.Context) error {
	key := temporaryFolder + uuid.NewString()
	defer s.discard(ctx, key)
	if err := s.bucket.WriteAll(ctx, key, []byte("autopost is alive"), &blob.WriterOptions{ContentType: "text/plain"}); err != nil {
		return fmt.Errorf("write to the media origin: %w", s.roomless(err))
	}
	return nil
}

// Put stores what r yields and returns where it is. An empty kind is told from the
// content. Storing the same content
// again is harmless and gives the same answer. A *Rejection says that the
// content itself cannot be taken, autopost.ErrNoRoom that the disk is full; any other
// error is r's or the bucket's.
//
// The content is written to a temporary object while it is hashed, checked, and
// only then published under its digest, so an object that can be found by its
// digest is whole.
func (s *Store) Put(ctx context.Context, r io.Reader, kind autopost.MediaKind, limits Limits) (Origin, error) {
	head, err := io.ReadAll(io.LimitReader(r, sniffBytes))
	if err != nil {
		return Origin{}, fmt.Errorf("read media: %w", err)
	}
	if kind == "" {
		kind = kindOf(head)
	}
	contentType, err := sniff(head, kind)
	if err != nil {
		return Origin{}, err
	}

	temporary := temporaryFolder + uuid.NewString()
	defer s.discard(ctx, temporary)
	stored := Origin{ContentType: contentType, Kind: kind}
	body := io.MultiReader(bytes.NewReader(head), r)
	if err := s.writeTemporary(ctx, temporary, body, limits.Of(kind), &stored); err != nil {
		return Origin{}, err
	}
	if pictureTypes[contentType] && kind != autopost.MediaFile {
		if err := s.measureObject(ctx, temporary, &stored); err != nil {
			return Origin{}, err
		}
	}
	_, err, _ = s.publishing.Do(stored.SHA256, func() (any, error) { return nil, s.publish(ctx, temporary, stored) })
	if err != nil {
		return Origin{}, fmt.Errorf("publish media %s: %w", stored.BlobRef, s.roomless(err))
	}
	return stored, nil
}

// writeTemporary streams body to key, hashing and counting it into stored.
func (s *Store) writeTemporary(ctx context.Context, key string, body io.Reader, limit int64, stored *Origin) error {
	taken := &taking{r: body, digest: sha256.New(), limit: limit, refusal: tooLarge(stored.Kind, limit)}
	if s.most > 0 && s.most < limit {
		taken.limit = s.most
		taken.refusal = &Rejection{
			Code: autopost.CodeMediaTooLarge, Message: fmt.Sprintf("%s is larger than %d bytes, the most that this kind of media origin takes; make it smaller", stored.Kind, s.most),
		}
	}
	if err := s.depot.write(ctx, key, stored.ContentType, taken); err != nil {
		// The driver may have put its own words around, or in place of, what went wrong here.
		if taken.err != nil {
			err = taken.err
		}
		return fmt.Errorf("write media: %w", s.roomless(err))
	}
	stored.SizeBytes = taken.size
	stored.SHA256 = hex.EncodeToString(taken.digest.Sum(nil))
	stored.BlobRef = refPrefix + stored.SHA256
	stored.OriginURL = s.base + objectKey(stored.SHA256)
	return nil
}

// taking reads content on its way to the bucket: it hashes, counts, and fails beyond
// the limit.
type taking struct {
	r       io.Reader
	digest  hash.Hash
	size    int64
	limit   int64
	refusal *Rejection
	err     error
}

func (t *taking) Read(p []byte) (int, error) {
	n, err := t.r.Read(p)
	t.size += int64(n)
	if t.size > t.limit {
		n, err = 0, t.refusal
	}
	_, _ = t.digest.Write(p[:n]) // a hash takes everything
	if err != nil && !errors.Is(err, io.EOF) {
		t.err = err
	}
	return n, err
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
	if whole, err := s.holds(ctx, key, stored.SizeBytes); whole || err != nil {
		return err
	}
	if whole, err := s.holds(ctx, temporary, stored.SizeBytes); err != nil {
		return err
	} else if !whole {
		return fmt.Errorf("the bucket did not keep the %d bytes that it was given", stored.SizeBytes)
	}
	return s.depot.publish(ctx, temporary, key)
}

// holds reports whether an object is there and has this size.
func (s *Store) holds(ctx context.Context, key string, size int64) (bool, error) {
	attributes, err := s.bucket.Attributes(ctx, key)
	if gcerrors.Code(err) == gcerrors.NotFound {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return attributes.Size == size, nil
}

// Has reports whether the origin holds the content of blobRef whole.
func (s *Store) Has(ctx context.Context, blobRef string, size int64) (bool, error) {
	digest, err := parseRef(blobRef)
	if err != nil {
		return false, err
	}
	whole, err := s.holds(ctx, objectKey(digest), size)
	if err != nil {
		return false, fmt.Errorf("look for %s: %w", blobRef, err)
	}
	return whole, nil
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
	return objectFolder + digest[:2] + "/" + digest[2:4] + "/" + digest
}

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
	// objectFolder contains complete objects, temporaryFolder objects that are being written.
	objectFolder    = "sha256/"
	temporaryFolder = "tmp/"
)

// Store is the media store: a bucket of objects named by the digest of their content, shared by all workspaces. It is
// safe for concurrent use, and several daemons may share one bucket.
type Store struct {
	// Full, if set, is called after each write that failed because the disk is full. Set it before the first write.
	Full func(error)

	bucket *blob.Bucket
	// base is the address of the bucket, with a final slash and without a credential.
	base    string
	backend backend
	// maxObject is the largest object that can be published, in bytes; 0 means no limit.
	maxObject int64
	// publishing combines concurrent writes of the same content.
	publishing singleflight.Group
}

// Origin describes a stored medium: a row of autopost.media_origin.
type Origin struct {
	// BlobRef is "sha256:" and the lower-case hexadecimal digest.
	BlobRef string
	// OriginURL is the address of the object in the bucket, without a credential.
	OriginURL string
	// SHA256 is the digest in lower-case hexadecimal.
	SHA256 string
	// ContentType is the type of the content.
	ContentType string
	SizeBytes   int64
	Kind        autopost.MediaKind
	// Width and Height are the pixels of a picture; 0 for other media.
	Width, Height int
	// Filename is the name that the source of a fetched medium states; "" if unknown. It is not stored.
	Filename string
}

// Close releases the bucket.
func (s *Store) Close() error { return s.bucket.Close() }

// Writable writes a small object and deletes it.
func (s *Store) Writable(ctx context.Context) error {
	key := temporaryFolder + uuid.NewString()
	defer s.discard(ctx, key)
	if err := s.bucket.WriteAll(ctx, key, []byte("autopost is alive"), &blob.WriterOptions{ContentType: "text/plain"}); err != nil {
		return fmt.Errorf("write to the media store: %w", s.markFull(err))
	}
	return nil
}

// Put stores the content of r. The kind "" means the kind of the content. Put returns the same result if the content is
// already stored. A *Rejection means that the content is refused, autopost.ErrNoSpace that the disk is full. Other errors
// come from r or the bucket.
//
// Put writes and hashes a temporary object, checks it, and then publishes it under its digest. So an object under a
// digest is complete.
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
		return Origin{}, fmt.Errorf("publish media %s: %w", stored.BlobRef, s.markFull(err))
	}
	return stored, nil
}

// writeTemporary streams body to key, hashing and counting it into stored.
func (s *Store) writeTemporary(ctx context.Context, key string, body io.Reader, limit int64, stored *Origin) error {
	content := &limitedHash{r: body, digest: sha256.New(), limit: limit, refusal: tooLarge(stored.Kind, limit)}
	if s.maxObject > 0 && s.maxObject < limit {
		content.limit = s.maxObject
		content.refusal = &Rejection{
			Code: autopost.CodeMediaTooLarge, Message: fmt.Sprintf("%s must have at most %d bytes in this kind of media store; make it smaller", stored.Kind, s.maxObject),
		}
	}
	if err := s.backend.write(ctx, key, stored.ContentType, content); err != nil {
		// The driver may have replaced the error of the reader.
		if content.err != nil {
			err = content.err
		}
		return fmt.Errorf("write media: %w", s.markFull(err))
	}
	stored.SizeBytes = content.size
	stored.SHA256 = hex.EncodeToString(content.digest.Sum(nil))
	stored.BlobRef = refPrefix + stored.SHA256
	stored.OriginURL = s.base + objectKey(stored.SHA256)
	return nil
}

// limitedHash is a reader that hashes and counts the content, and fails above the limit.
type limitedHash struct {
	r       io.Reader
	digest  hash.Hash
	size    int64
	limit   int64
	refusal *Rejection
	err     error
}

func (t *limitedHash) Read(p []byte) (int, error) {
	n, err := t.r.Read(p)
	t.size += int64(n)
	if t.size > t.limit {
		n, err = 0, t.refusal
	}
	_, _ = t.digest.Write(p[:n]) // never fails
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

// publish gives the temporary object its final name, unless a complete object has it. An object of another size was
// damaged from outside and is replaced.
func (s *Store) publish(ctx context.Context, temporary string, stored Origin) error {
	key := objectKey(stored.SHA256)
	if whole, err := s.holds(ctx, key, stored.SizeBytes); whole || err != nil {
		return err
	}
	if whole, err := s.holds(ctx, temporary, stored.SizeBytes); err != nil {
		return err
	} else if !whole {
		return fmt.Errorf("the bucket did not store all %d bytes", stored.SizeBytes)
	}
	return s.backend.publish(ctx, temporary, key)
}

// holds reports whether an object of this size exists.
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

// Has reports whether the complete content of blobRef is stored.
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

// discard removes a temporary object, also after the end of ctx.
func (s *Store) discard(ctx context.Context, key string) {
	_ = s.bucket.Delete(context.WithoutCancel(ctx), key)
}

// Open streams the content of blobRef. The error is autopost.ErrNoOrigin if it is not stored. The caller closes it.
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

// CheckRef returns an error if blobRef does not have the form of a reference.
func CheckRef(blobRef string) error {
	_, err := parseRef(blobRef)
	return err
}

func parseRef(blobRef string) (digest string, err error) {
	digest, ok := strings.CutPrefix(blobRef, refPrefix)
	raw, err := hex.DecodeString(digest)
	if !ok || err != nil || len(raw) != sha256.Size || strings.ToLower(digest) != digest {
		return "", fmt.Errorf("blob_ref must be %s and 64 lower-case hexadecimal digits, got %q", refPrefix, blobRef)
	}
	return digest, nil
}

// objectKey distributes objects over small folders.
func objectKey(digest string) string {
	return objectFolder + digest[:2] + "/" + digest[2:4] + "/" + digest
}

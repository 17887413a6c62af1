package media

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/google/uuid"
	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"
)

// pageObjects is the number of objects per page of a listing.
const pageObjects = 1000

// Object is an object of the bucket.
type Object struct {
	BlobRef   string
	SizeBytes int64
}

// Objects calls visit with the objects that were stored before then, at most 1000 per call. It ends with the first error.
func (s *Store) Objects(ctx context.Context, then time.Time, visit func([]Object) error) error {
	return s.list(ctx, objectFolder, func(page []*blob.ListObject) error {
		var objects []Object
		for _, o := range page {
			digest := o.Key[strings.LastIndexByte(o.Key, '/')+1:]
			if _, err := parseRef(refPrefix + digest); err == nil && objectKey(digest) == o.Key && o.ModTime.Before(then) {
				objects = append(objects, Object{BlobRef: refPrefix + digest, SizeBytes: o.Size})
			}
		}
		if len(objects) == 0 {
			return nil
		}
		return visit(objects)
	})
}

// Remove removes the object of blobRef. A missing object is not an error. The database must have blocked the registration of
// the content before.
func (s *Store) Remove(ctx context.Context, blobRef string) error {
	digest, err := parseRef(blobRef)
	if err != nil {
		return err
	}
	if err := s.bucket.Delete(ctx, objectKey(digest)); err != nil && gcerrors.Code(err) != gcerrors.NotFound {
		return fmt.Errorf("remove %s: %w", blobRef, err)
	}
	return nil
}

// Temporary counts and removes temporary objects of interrupted writes from before then. A dry run only counts. Other
// leftovers (attributes without a file, multipart uploads) are removed and counted as objects without a size.
func (s *Store) Temporary(ctx context.Context, then time.Time, dryRun bool) (count int, size int64, err error) {
	err = s.list(ctx, temporaryFolder, func(page []*blob.ListObject) error {
		for _, o := range page {
			if !o.ModTime.Before(then) {
				continue
			}
			if !dryRun {
				if err := s.bucket.Delete(ctx, o.Key); err != nil && gcerrors.Code(err) != gcerrors.NotFound {
					return fmt.Errorf("remove a temporary object: %w", err)
				}
			}
			count, size = count+1, size+o.Size
		}
		return nil
	})
	if err != nil || dryRun {
		return count, size, err
	}
	hidden, err := s.backend.leftovers(ctx, then)
	return count + hidden, size, err
}

func (s *Store) list(ctx context.Context, prefix string, visit func([]*blob.ListObject) error) error {
	for token := blob.FirstPageToken; token != nil; {
		page, next, err := s.bucket.ListPage(ctx, token, pageObjects, &blob.ListOptions{Prefix: prefix})
		if err != nil {
			return fmt.Errorf("list media store: %w", err)
		}
		if err := visit(page); err != nil {
			return err
		}
		token = next
		if len(next) == 0 {
			return nil
		}
	}
	return nil
}

// Probe writes, publishes, reads, lists and deletes an object, like the daemon. The error contains the failed step.
func (s *Store) Probe(ctx context.Context) (err error) {
	content := []byte("autopost checks whether it can write")
	from, to := temporaryFolder+uuid.NewString(), temporaryFolder+uuid.NewString()
	defer func() {
		s.discard(ctx, from)
		s.discard(ctx, to)
	}()
	if err := s.bucket.WriteAll(ctx, from, content, &blob.WriterOptions{ContentType: "text/plain"}); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	if err := s.backend.publish(ctx, from, to); err != nil {
		return fmt.Errorf("copy: %w", err)
	}
	r, err := s.bucket.NewReader(ctx, to, nil)
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	got, err := io.ReadAll(r)
	if err = errors.Join(err, r.Close()); err != nil {
		return fmt.Errorf("read: %w", err)
	}
	if !bytes.Equal(got, content) {
		return errors.New("read: the content differs from what was written")
	}
	if err := s.list(ctx, to, func([]*blob.ListObject) error { return nil }); err != nil {
		return err
	}
	if err := s.bucket.Delete(ctx, to); err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	return nil
}

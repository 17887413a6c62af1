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

// pageObjects is how many objects are listed at once.
const pageObjects = 1000

// Object is content that stands in the bucket, whoever has a row of it.
type Object struct {
	BlobRef   string
	SizeBytes int64
}

// Objects visits the content that was stored before then, at most 1000 objects at a
// time, until all were seen or visit fails.
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

// Remove takes the object of blobRef away. That it is not there is no error. The
// database must have barred its content from being registered.
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

// Temporary tells what writes that died before then left behind, and takes it away
// unless it is a dry run: objects with their bytes. What only the kind of the bucket
// knows of (attributes without a file, uploads in parts) is taken away and counted as objects.
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
	hidden, err := s.depot.leftovers(ctx, then)
	return count + hidden, size, err
}

func (s *Store) list(ctx context.Context, prefix string, visit func([]*blob.ListObject) error) error {
	for token := blob.FirstPageToken; token != nil; {
		page, next, err := s.bucket.ListPage(ctx, token, pageObjects, &blob.ListOptions{Prefix: prefix})
		if err != nil {
			return fmt.Errorf("list media origin: %w", err)
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

// Probe writes an object, publishes it, reads it back, lists it and deletes it: what the
// daemon will do. The error says at which of these the origin failed.
func (s *Store) Probe(ctx context.Context) (err error) {
	content := []byte("autopost looks whether it can write here")
	from, to := temporaryFolder+uuid.NewString(), temporaryFolder+uuid.NewString()
	defer func() {
		s.discard(ctx, from)
		s.discard(ctx, to)
	}()
	if err := s.bucket.WriteAll(ctx, from, content, &blob.WriterOptions{ContentType: "text/plain"}); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	if err := s.depot.publish(ctx, from, to); err != nil {
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
		return errors.New("read: other bytes came back than were written")
	}
	if err := s.list(ctx, to, func([]*blob.ListObject) error { return nil }); err != nil {
		return err
	}
	if err := s.bucket.Delete(ctx, to); err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	return nil
}

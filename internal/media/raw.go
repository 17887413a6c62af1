package media

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"autopost"
)

// rawFolder contains sealed raw payloads: raw/YYYYMMDD/UUID.
const rawFolder = "raw/"

var (
	rawRef = regexp.MustCompile(`^raw/\d{8}/[0-9a-f-]{36}$`)
	rawDay = regexp.MustCompile(`^raw/(\d{8})/$`)
)

func checkRaw(ref string) error {
	if !rawRef.MatchString(ref) {
		return errors.New("payload_ref must be raw/YYYYMMDD/UUID")
	}
	return nil
}

// WriteRaw stores a sealed raw payload. A failed write leaves nothing.
func (s *Store) WriteRaw(ctx context.Context, ref string, sealed []byte) error {
	if err := checkRaw(ref); err != nil {
		return err
	}
	if err := s.backend.write(ctx, ref, "application/octet-stream", bytes.NewReader(sealed)); err != nil {
		return fmt.Errorf("write %s: %w", ref, s.markFull(err))
	}
	return nil
}

// ReadRaw returns a sealed raw payload. The error is autopost.ErrNoOrigin if it is not stored.
func (s *Store) ReadRaw(ctx context.Context, ref string) ([]byte, error) {
	if err := checkRaw(ref); err != nil {
		return nil, err
	}
	sealed, err := s.bucket.ReadAll(ctx, ref)
	if gcerrors.Code(err) == gcerrors.NotFound {
		err = autopost.ErrNoOrigin
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", ref, err)
	}
	return sealed, nil
}

// SweepRaw removes the raw payloads of all days before since (YYYYMMDD), and counts them. A dry run only counts.
func (s *Store) SweepRaw(ctx context.Context, since string, dryRun bool) (count int, size int64, err error) {
	days := s.bucket.List(&blob.ListOptions{Prefix: rawFolder, Delimiter: "/"})
	for {
		day, err := days.Next(ctx)
		if errors.Is(err, io.EOF) {
			return count, size, nil
		}
		if err != nil {
			return count, size, fmt.Errorf("list raw payloads: %w", err)
		}
		if at := rawDay.FindStringSubmatch(day.Key); at == nil || at[1] >= since {
			continue
		}
		err = s.list(ctx, day.Key, func(page []*blob.ListObject) error {
			for _, o := range page {
				if !dryRun {
					if err := s.bucket.Delete(ctx, o.Key); err != nil && gcerrors.Code(err) != gcerrors.NotFound {
						return fmt.Errorf("remove a raw payload: %w", err)
					}
				}
				count, size = count+1, size+o.Size
			}
			return nil
		})
		if err != nil {
			return count, size, err
		}
	}
}

package media_test

import (
	"bytes"
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/media"
)

// rows is a table of media_origin: workspace and reference.
type rows struct {
	held   map[string]bool
	answer media.Registered
	before func(media.Origin)
}

func (r *rows) PutMediaOrigin(_ context.Context, workspace string, o media.Origin) (media.Registered, error) {
	if r.before != nil {
		r.before(o)
	}
	if r.answer.Applied {
		r.held[workspace+" "+o.BlobRef] = true
	}
	return r.answer, nil
}

func (r *rows) GetMediaOrigin(_ context.Context, workspace, blobRef string) (bool, error) {
	return r.held[workspace+" "+blobRef], nil
}

func TestUploadBelongsToItsWorkspace(t *testing.T) {
	store, _ := folderStore(t)
	held := &rows{held: map[string]bool{}, answer: media.Registered{Applied: true}}
	uploads := &media.WorkspaceStore{Store: store, Rows: held}
	content := pngOf(t, 30, 20)
	origin, err := uploads.Put(t.Context(), "w", bytes.NewReader(content), "")
	require.NoError(t, err)
	require.Equal(t, []any{autopost.MediaImage, 30, 20, int64(len(content))}, []any{origin.Kind, origin.Width, origin.Height, origin.SizeBytes})

	opened, err := uploads.Open(t.Context(), "w", origin.BlobRef)
	require.NoError(t, err)
	require.Equal(t, int64(len(content)), opened.Size)
	got, err := io.ReadAll(opened)
	require.NoError(t, err)
	require.Equal(t, content, got)
	require.NoError(t, opened.Close())
	_, err = uploads.Open(t.Context(), "v", origin.BlobRef)
	require.ErrorIs(t, err, autopost.ErrNoOrigin, "another workspace knows the hash, and has never sent the bytes")
	_, err = uploads.Open(t.Context(), "w", "sha256:../../etc/passwd")
	require.ErrorContains(t, err, "blob_ref")
}

func TestUploadWithoutAKind(t *testing.T) {
	for kind, content := range map[autopost.MediaKind][]byte{
		autopost.MediaImage: gifOf(t), autopost.MediaVideo: mp4Of(50), autopost.MediaAudio: mp3Of(50), autopost.MediaFile: []byte("<svg/>"),
	} {
		store, _ := folderStore(t)
		uploads := media.WorkspaceStore{Store: store, Rows: &rows{held: map[string]bool{}, answer: media.Registered{Applied: true}}}
		origin, err := uploads.Put(t.Context(), "w", bytes.NewReader(content), "")
		require.NoError(t, err)
		require.Equal(t, kind, origin.Kind)
	}
}

func TestRefusedUpload(t *testing.T) {
	store, _ := folderStore(t)
	put := func(r *rows) error {
		r.held = map[string]bool{}
		uploads := media.WorkspaceStore{Store: store, Rows: r}
		_, err := uploads.Put(t.Context(), "w", bytes.NewReader(mp4Of(50)), "")
		return err
	}
	err := put(&rows{answer: media.Registered{Reason: "too_large", Limit: 40}})
	var rejection *media.Rejection
	require.ErrorAs(t, err, &rejection)
	require.Equal(t, autopost.CodeMediaTooLarge, rejection.Code)
	require.Contains(t, rejection.Message, "must have at most 40 bytes; make it smaller, or raise MAX_MEDIA_BYTES_VIDEO")
	require.Equal(t, autopost.Permanent, media.Verdict(err).Category)

	err = put(&rows{answer: media.Registered{Reason: "being_removed"}})
	require.ErrorIs(t, err, media.ErrBusy)
	require.Equal(t, autopost.Transient, media.Verdict(err).Category)

	// A removal that began before this content was stored, and ends before its row is there.
	err = put(&rows{answer: media.Registered{Applied: true}, before: func(o media.Origin) {
		require.NoError(t, store.Remove(t.Context(), o.BlobRef))
	}})
	require.ErrorIs(t, err, media.ErrBusy)
}

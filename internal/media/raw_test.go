package media_test

import (
	"bytes"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/media"
)

// Raw payloads go by their day. Media and other folders stay.
func TestRawPayloadsAreSweptByDay(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"mem://", "file://" + t.TempDir()} {
		store, err := media.OpenStore(t.Context(), address)
		require.NoError(t, err)
		defer func() { _ = store.Close() }()
		medium, err := store.Put(t.Context(), bytes.NewReader(pngOf(t, 2, 2)), "", media.Limits{ImageBytes: 1 << 20, VideoBytes: 1 << 20})
		require.NoError(t, err)
		old, fresh := "raw/20260531/"+uuid.NewString(), "raw/20260601/"+uuid.NewString()
		for _, ref := range []string{old, "raw/20250101/" + uuid.NewString(), fresh} {
			require.NoError(t, store.WriteRaw(t.Context(), ref, []byte("sealed")))
		}
		for _, dryRun := range []bool{true, false} {
			count, size, err := store.SweepRaw(t.Context(), "20260601", dryRun)
			require.NoError(t, err)
			require.Equal(t, []int64{2, 12}, []int64{int64(count), size})
		}
		_, err = store.ReadRaw(t.Context(), old)
		require.ErrorIs(t, err, autopost.ErrNoOrigin)
		got, err := store.ReadRaw(t.Context(), fresh)
		require.NoError(t, err)
		require.Equal(t, "sealed", string(got))
		count, _, err := store.SweepRaw(t.Context(), "20260602", false)
		require.NoError(t, err)
		require.Equal(t, 1, count, "with raw payloads off all of them go")
		whole, err := store.Has(t.Context(), medium.BlobRef, medium.SizeBytes)
		require.NoError(t, err)
		require.True(t, whole)
		for _, ref := range []string{"", "raw/x", "sha256/aa", "raw/20260601/../../sha256"} {
			require.Error(t, store.WriteRaw(t.Context(), ref, nil), ref)
			_, err = store.ReadRaw(t.Context(), ref)
			require.Error(t, err, ref)
		}
	}
}

package adaptertest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/sim"
)

// upload uploads a medium and checks the rules for every result.
func (b *bench) upload(t *testing.T, medium autopost.Media) (autopost.Uploaded, *autopost.Error) {
	t.Helper()
	uploaded, failure := b.adapter.(autopost.Uploader).Upload(t.Context(), autopost.Upload{Secret: autopost.NewSecret(b.Secret), Media: b.media, Medium: medium})
	require.Zero(t, b.media.OpenContents())
	if failure == nil {
		require.NotEmpty(t, uploaded.FileID)
		require.NotEmpty(t, uploaded.Kind)
		return uploaded, nil
	}
	require.Empty(t, uploaded.FileID)
	require.True(t, failure.Known, "nothing was posted: %s", failure)
	RequireSound(t, autopost.Failed(*failure), b.Secret)
	return uploaded, failure
}

func (b *bench) medium(kind autopost.MediaKind) autopost.Media {
	return autopost.Media{Type: kind, BlobRef: b.media.Add(kind)}
}

func testUpload(t *testing.T, h Harness) {
	for _, kind := range h.kinds() {
		t.Run(string(kind), func(t *testing.T) {
			b := newBench(t, h)
			medium := b.medium(kind)
			uploaded, failure := b.upload(t, medium)
			require.Nil(t, failure)
			require.Equal(t, h.FileKinds[kind], uploaded.Kind)
			require.Empty(t, b.posts())
			handed := 0
			for _, e := range b.core.Log.Entries() {
				for _, m := range e.Media {
					if m.Uploaded {
						handed++
						require.Equal(t, strings.TrimPrefix(medium.BlobRef, "sha256:"), m.Digest, "the same bytes")
					}
				}
			}
			require.Equal(t, 1, handed)
			kept, ok, err := b.media.Cached(t.Context(), medium.BlobRef, uploaded.Kind)
			require.NoError(t, err)
			require.True(t, ok)
			require.Equal(t, uploaded.FileID, kept)

			calls := len(b.core.Log.Entries())
			again, failure := b.upload(t, medium)
			require.Nil(t, failure)
			require.Equal(t, uploaded.FileID, again.FileID)
			require.Len(t, b.core.Log.Entries(), calls, "one upload per medium")
			d := b.delivery(mediaStep("media-1", 0))
			d.Payload.Media = []autopost.Media{medium}
			require.True(t, b.send(t, d).OK)
			require.Len(t, b.core.Log.Entries(), calls+1, "a post reuses the upload")
		})
	}
}

func testUploadFailures(t *testing.T, h Harness) {
	b := newBench(t, h)
	_, failure := b.upload(t, autopost.Media{Type: "hologram", BlobRef: b.media.Add(autopost.MediaFile)})
	require.Equal(t, autopost.CodeValidationFailed, failure.Code)
	for _, row := range []Row{h.Definite5xx, {Status: 401, Code: "verify.token", Description: "Who is this?"}} {
		b := newBench(t, h)
		row.Description += " " + h.Secret
		b.fault(t, row.fault(""))
		_, failure := b.upload(t, b.medium(autopost.MediaImage))
		require.NotNil(t, failure)
		require.Contains(t, string(failure.Raw), "[redacted]", "the answer is kept without the secret")
		require.Len(t, b.core.Log.Entries(), 1, "no hidden retry")
		require.Equal(t, row.Status == 401, failure.Category == autopost.Permanent && failure.Scope == autopost.ScopeChannel, "%s", failure)
	}
}

func testUploadLost(t *testing.T, h Harness) {
	for _, effect := range []sim.Effect{sim.EffectAcceptThenDrop, sim.EffectReset, sim.EffectResetBeforeBody, sim.EffectResetMidBody, sim.EffectGarbage} {
		t.Run(string(effect), func(t *testing.T) {
			b := newBench(t, h)
			b.fault(t, sim.Fault{Effect: effect, To: 1})
			_, failure := b.upload(t, b.medium(autopost.MediaImage))
			require.NotNil(t, failure)
			require.Equal(t, autopost.Transient, failure.Category)
		})
	}
}

func testUploadMissing(t *testing.T, h Harness) {
	b := newBench(t, h)
	medium := b.medium(autopost.MediaImage)
	_, failure := b.adapter.(autopost.Uploader).Upload(t.Context(), autopost.Upload{Media: b.media, Medium: medium})
	require.Equal(t, autopost.CodeCredentialMissing, failure.Code)
	b.media.Lose(medium.BlobRef)
	_, failure = b.upload(t, medium)
	require.Equal(t, autopost.CodeMediaMissingOrigin, failure.Code)
	_, failure = b.upload(t, autopost.Media{Type: autopost.MediaImage, URL: "https://example.org/a"})
	require.Equal(t, autopost.CodeMediaMissingOrigin, failure.Code)
	require.Empty(t, b.core.Log.Entries())
}

package adaptertest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/sim"
)

// actCases are those of platforms that let something be done to a post that was sent.
var actCases = map[string]func(*testing.T, Harness){
	"DoesWhatItSaysAndNothingElse":        testOffered,
	"EveryActStandsAndIsRepeated":         testActs,
	"EveryMessageOfAPostIsDeleted":        testDeleteSeries,
	"ActErrorTable":                       testActRows,
	"ALostAnswerToAnActIsMendedByAnother": testActLost,
	"ActWithoutSecretOrID":                testActMissing,
	"NoAnswerToAnActGivesTheSecretAway":   testActCanary,
	"AnActCancelledBeforeItsCall":         testActCancelled,
}

// done carries out an act by the interface that the adapter has for it.
func (b *bench) done(ctx context.Context, t *testing.T, kind autopost.ActKind, call autopost.Call) *autopost.Error {
	t.Helper()
	call.Emit, call.Renew = nil, nil
	var failure *autopost.Error
	switch kind {
	case autopost.ActEdit:
		failure = b.adapter.(autopost.Editor).Edit(ctx, call)
	case autopost.ActDelete:
		failure = b.adapter.(autopost.Deleter).Delete(ctx, call)
	case autopost.ActPin:
		failure = b.adapter.(autopost.Pinner).Pin(ctx, call)
	case autopost.ActUnpin:
		failure = b.adapter.(autopost.Pinner).Unpin(ctx, call)
	}
	if failure != nil {
		RequireSound(t, autopost.Failed(*failure), b.Secret)
	}
	return failure
}

func (b *bench) act(t *testing.T, kind autopost.ActKind, d autopost.Delivery) *autopost.Error {
	t.Helper()
	return b.done(t.Context(), t, kind, b.call(d))
}

// sent sends a delivery and returns it as an act gets it: with the ids of what was made,
// and, for an edit, another text.
func (b *bench) sent(t *testing.T, d autopost.Delivery) autopost.Delivery {
	t.Helper()
	o := b.send(t, d)
	require.True(t, o.OK, "%v", o.Error)
	var raw struct{ Steps map[string][]string }
	require.NoError(t, json.Unmarshal(o.Raw, &raw))
	d.RenderMeta.Progress = autopost.SeriesProgress{Steps: raw.Steps}
	d.RenderedText = "News, corrected"
	d.RenderMeta.Title = "Corrected"
	return d
}

// prepared is a post to which an act of this kind means something.
func (b *bench) prepared(t *testing.T, kind autopost.ActKind) autopost.Delivery {
	t.Helper()
	d := b.sent(t, b.plain())
	if kind == autopost.ActUnpin {
		require.Nil(t, b.act(t, autopost.ActPin, d))
	}
	return d
}

// calls are the entries of an act's own call.
func (b *bench) calls(kind autopost.ActKind) []sim.Entry {
	return slices.DeleteFunc(b.core.Log.Entries(), func(e sim.Entry) bool { return e.Method != b.Acts[kind] })
}

// touched are the messages that an act concerned, as the receiver saw it.
func touched(kind autopost.ActKind, entries []sim.Entry) []string {
	var ids []string
	for _, e := range entries {
		ids = append(ids, map[autopost.ActKind][]string{
			autopost.ActEdit: e.Edited, autopost.ActDelete: e.Removed, autopost.ActPin: e.Pinned, autopost.ActUnpin: e.Unpinned,
		}[kind]...)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

func testOffered(t *testing.T, h Harness) {
	b := newBench(t, h)
	_, edits := b.adapter.(autopost.Editor)
	_, deletes := b.adapter.(autopost.Deleter)
	_, pins := b.adapter.(autopost.Pinner)
	for kind, offered := range map[autopost.ActKind]bool{
		autopost.ActEdit: edits, autopost.ActDelete: deletes, autopost.ActPin: pins, autopost.ActUnpin: pins,
	} {
		require.Equal(t, h.Acts[kind] != "", offered, kind)
	}
}

func testActs(t *testing.T, h Harness) {
	for kind := range h.Acts {
		t.Run(string(kind), func(t *testing.T) {
			b := newBench(t, h)
			d := b.prepared(t, kind)
			require.Nil(t, b.act(t, kind, d))
			calls := b.calls(kind)
			require.Len(t, calls, 1)
			require.True(t, calls[0].Accepted)
			require.Equal(t, d.MessageIDs()[:1], touched(kind, calls))
			if kind == autopost.ActEdit {
				require.Equal(t, "News, corrected", calls[0].Text)
			}
			require.Nil(t, b.act(t, kind, d), "to ask again is to ask once")
			require.Len(t, b.posts(), 1, "nothing is sent")
		})
	}
}

func testDeleteSeries(t *testing.T, h Harness) {
	if h.Plain != nil {
		return // one video is all
	}
	b := newBench(t, h)
	d := b.delivery(autopost.Step{Name: "text", Text: true, Body: "one"}, autopost.Step{Name: "media-1", Items: []int{0, 1}}, autopost.Step{Name: "text-1", Text: true, Body: "two"})
	d = b.sent(t, b.withMedia(d, autopost.MediaImage, autopost.MediaImage))
	require.Nil(t, b.act(t, autopost.ActDelete, d))
	require.ElementsMatch(t, d.MessageIDs(), touched(autopost.ActDelete, b.core.Log.Entries()))
}

func testActRows(t *testing.T, h Harness) {
	for kind, rows := range h.ActRows {
		for _, row := range rows {
			t.Run(fmt.Sprintf("%s %d %s %s", kind, row.Status, row.Code, row.Description), func(t *testing.T) {
				b := newBench(t, h)
				d := b.prepared(t, kind)
				row.Description += " " + h.Secret
				b.fault(t, row.fault(h.Acts[kind]))
				failure := b.act(t, kind, d)
				if row.Want == (Class{}) {
					require.Nil(t, failure)
				} else {
					require.NotNil(t, failure)
					requireClass(t, autopost.Failed(*failure), row.Want)
				}
				require.Len(t, b.calls(kind), 1, "no hidden repetition")
			})
		}
	}
}

func testActLost(t *testing.T, h Harness) {
	for kind := range h.Acts {
		for _, effect := range []sim.Effect{sim.EffectAcceptThenDrop, sim.EffectReset, sim.EffectGarbage} {
			t.Run(fmt.Sprint(kind, " ", effect), func(t *testing.T) {
				b := newBench(t, h)
				d := b.prepared(t, kind)
				b.fault(t, sim.Fault{Method: h.Acts[kind], Effect: effect, To: 1})
				failure := b.act(t, kind, d)
				require.NotNil(t, failure)
				require.Equal(t, autopost.Transient, failure.Category, "%s", failure)
				require.Len(t, b.calls(kind), 1, "no hidden repetition")
				require.Nil(t, b.act(t, kind, d), "the next attempt finds it done, or does it")
				require.Equal(t, d.MessageIDs()[:1], touched(kind, b.calls(kind)))
			})
		}
	}
}

func testActMissing(t *testing.T, h Harness) {
	b := newBench(t, h)
	for kind := range h.Acts {
		d := b.plain()
		failure := b.act(t, kind, d)
		require.NotNil(t, failure, kind)
		require.Equal(t, autopost.Permanent, failure.Category)
		require.Equal(t, autopost.ScopeDelivery, failure.Scope, "%s", failure)
		call := b.call(d)
		call.Secret = autopost.Secret{}
		failure = b.done(t.Context(), t, kind, call)
		require.NotNil(t, failure, kind)
		requireClass(t, autopost.Failed(*failure), Class{autopost.Permanent, autopost.ScopeChannel, autopost.CodeCredentialMissing, 0})
	}
	require.Empty(t, b.core.Log.Entries())
}

func testActCanary(t *testing.T, h Harness) {
	for kind := range h.Acts {
		for _, status := range []int{200, 204, 302, 400, 401, 403, 429, 500} {
			b := newBench(t, h)
			d := b.prepared(t, kind)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.WriteHeader(status)
				said := r.URL.Path + " " + r.Header.Get("Authorization")
				_ = json.NewEncoder(w).Encode(map[string]any{"ok": false, "success": false, "description": said, "code": said, "message": said})
			}))
			t.Cleanup(server.Close)
			b.connect(t, server.URL)
			failure := b.act(t, kind, d)
			require.Equal(t, kind == autopost.ActDelete && status == http.StatusNoContent && h.Plain != nil, failure == nil, "%s %d", kind, status)
		}
	}
}

func testActCancelled(t *testing.T, h Harness) {
	for kind := range h.Acts {
		b := newBench(t, h)
		d := b.prepared(t, kind)
		before := len(b.core.Log.Entries())
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		failure := b.done(ctx, t, kind, b.call(d))
		require.NotNil(t, failure)
		require.Equal(t, autopost.Transient, failure.Category)
		require.Len(t, b.core.Log.Entries(), before)
	}
}

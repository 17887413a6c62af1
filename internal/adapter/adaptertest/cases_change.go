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

// changeCases are for platforms that support post changes.
var changeCases = map[string]func(*testing.T, Harness){
	"OffersTheChangesOfTheHarness":   testOffered,
	"ChangesMayBeRepeated":           testChanges,
	"EveryMessageOfAPostIsDeleted":   testDeleteSeries,
	"ChangeErrorTable":               testChangeRows,
	"LostAnswerToAChangeIsTransient": testChangeLost,
	"ChangeWithoutSecretOrID":        testChangeMissing,
	"ChangeNeverRevealsTheSecret":    testChangeCanary,
	"ChangeCancelledBeforeItsCall":   testChangeCancelled,
}

// makeChange makes a post change.
func (b *bench) makeChange(ctx context.Context, t *testing.T, kind autopost.ChangeKind, call autopost.Call) *autopost.Error {
	t.Helper()
	call.Emit, call.Renew = nil, nil
	var failure *autopost.Error
	switch kind {
	case autopost.ChangeEdit:
		failure = b.adapter.(autopost.Editor).Edit(ctx, call)
	case autopost.ChangeDelete:
		failure = b.adapter.(autopost.Deleter).Delete(ctx, call)
	case autopost.ChangePin:
		failure = b.adapter.(autopost.Pinner).Pin(ctx, call)
	case autopost.ChangeUnpin:
		failure = b.adapter.(autopost.Pinner).Unpin(ctx, call)
	}
	if failure != nil {
		RequireSound(t, autopost.Failed(*failure), b.Secret)
	}
	return failure
}

func (b *bench) change(t *testing.T, kind autopost.ChangeKind, d autopost.Delivery) *autopost.Error {
	t.Helper()
	return b.makeChange(t.Context(), t, kind, b.call(d))
}

// sent sends a delivery and returns it as a post change receives it: with the ids of its messages and,
// for an edit, new content.
func (b *bench) sent(t *testing.T, d autopost.Delivery) autopost.Delivery {
	t.Helper()
	o := b.send(t, d)
	require.True(t, o.OK, "%v", o.Error)
	steps, _ := AcknowledgedIDs(t, d, o)
	d.RenderMeta.Progress = autopost.SeriesProgress{Steps: steps}
	d.RenderedText = "News, corrected"
	d.RenderMeta.Title = "Corrected"
	return d
}

// prepared sends a post that this kind of change can change.
func (b *bench) prepared(t *testing.T, kind autopost.ChangeKind) autopost.Delivery {
	t.Helper()
	d := b.sent(t, b.plain())
	if kind == autopost.ChangeUnpin {
		require.Nil(t, b.change(t, autopost.ChangePin, d))
	}
	return d
}

// calls returns the log entries of a change's own call.
func (b *bench) calls(kind autopost.ChangeKind) []sim.Entry {
	return slices.DeleteFunc(b.core.Log.Entries(), func(e sim.Entry) bool { return e.Method != b.Changes[kind] })
}

// touched returns the ids of the messages that a change affected, from the simulator's log.
func touched(kind autopost.ChangeKind, entries []sim.Entry) []string {
	var ids []string
	for _, e := range entries {
		ids = append(ids, map[autopost.ChangeKind][]string{
			autopost.ChangeEdit: e.Edited, autopost.ChangeDelete: e.Removed, autopost.ChangePin: e.Pinned, autopost.ChangeUnpin: e.Unpinned,
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
	for kind, offered := range map[autopost.ChangeKind]bool{
		autopost.ChangeEdit: edits, autopost.ChangeDelete: deletes, autopost.ChangePin: pins, autopost.ChangeUnpin: pins,
	} {
		require.Equal(t, h.Changes[kind] != "", offered, kind)
	}
}

func testChanges(t *testing.T, h Harness) {
	for kind := range h.Changes {
		t.Run(string(kind), func(t *testing.T) {
			b := newBench(t, h)
			d := b.prepared(t, kind)
			require.Nil(t, b.change(t, kind, d))
			calls := b.calls(kind)
			require.Len(t, calls, 1)
			require.True(t, calls[0].Accepted)
			require.Equal(t, d.MessageIDs()[:1], touched(kind, calls))
			if kind == autopost.ChangeEdit {
				require.Equal(t, "News, corrected", calls[0].Text)
			}
			require.Nil(t, b.change(t, kind, d), "a repeated change succeeds")
			require.Len(t, b.posts(), 1, "no new post")
		})
	}
}

func testDeleteSeries(t *testing.T, h Harness) {
	if h.Plain != nil {
		return // there is only the video
	}
	b := newBench(t, h)
	d := b.delivery(autopost.Step{Name: "text", Text: true, Body: "one"}, autopost.Step{Name: "media-1", Items: []int{0, 1}}, autopost.Step{Name: "text-1", Text: true, Body: "two"})
	d = b.sent(t, b.withMedia(d, autopost.MediaImage, autopost.MediaImage))
	require.Nil(t, b.change(t, autopost.ChangeDelete, d))
	require.ElementsMatch(t, d.MessageIDs(), touched(autopost.ChangeDelete, b.core.Log.Entries()))
}

func testChangeRows(t *testing.T, h Harness) {
	for kind, rows := range h.ChangeRows {
		for _, row := range rows {
			t.Run(fmt.Sprintf("%s %d %s %s", kind, row.Status, row.Code, row.Description), func(t *testing.T) {
				b := newBench(t, h)
				d := b.prepared(t, kind)
				row.Description += " " + h.Secret
				b.fault(t, row.fault(h.Changes[kind]))
				failure := b.change(t, kind, d)
				if row.Want == (Class{}) {
					require.Nil(t, failure)
				} else {
					require.NotNil(t, failure)
					requireClass(t, autopost.Failed(*failure), row.Want)
				}
				require.Len(t, b.calls(kind), 1, "no hidden retry")
			})
		}
	}
}

func testChangeLost(t *testing.T, h Harness) {
	for kind := range h.Changes {
		for _, effect := range []sim.Effect{sim.EffectAcceptThenDrop, sim.EffectReset, sim.EffectGarbage} {
			t.Run(fmt.Sprint(kind, " ", effect), func(t *testing.T) {
				b := newBench(t, h)
				d := b.prepared(t, kind)
				b.fault(t, sim.Fault{Method: h.Changes[kind], Effect: effect, To: 1})
				failure := b.change(t, kind, d)
				require.NotNil(t, failure)
				require.Equal(t, autopost.Transient, failure.Category, "%s", failure)
				require.Len(t, b.calls(kind), 1, "no hidden retry")
				require.Nil(t, b.change(t, kind, d), "the next attempt succeeds")
				require.Equal(t, d.MessageIDs()[:1], touched(kind, b.calls(kind)))
			})
		}
	}
}

func testChangeMissing(t *testing.T, h Harness) {
	b := newBench(t, h)
	for kind := range h.Changes {
		d := b.plain()
		failure := b.change(t, kind, d)
		require.NotNil(t, failure, kind)
		require.Equal(t, autopost.Permanent, failure.Category)
		require.Equal(t, autopost.ScopeDelivery, failure.Scope, "%s", failure)
		call := b.call(d)
		call.Secret = autopost.Secret{}
		failure = b.makeChange(t.Context(), t, kind, call)
		require.NotNil(t, failure, kind)
		requireClass(t, autopost.Failed(*failure), Class{autopost.Permanent, autopost.ScopeChannel, autopost.CodeCredentialMissing, 0})
	}
	require.Empty(t, b.core.Log.Entries())
}

func testChangeCanary(t *testing.T, h Harness) {
	for kind := range h.Changes {
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
			failure := b.change(t, kind, d)
			require.Equal(t, kind == autopost.ChangeDelete && status == http.StatusNoContent && h.Plain != nil, failure == nil, "%s %d", kind, status)
		}
	}
}

func testChangeCancelled(t *testing.T, h Harness) {
	for kind := range h.Changes {
		b := newBench(t, h)
		d := b.prepared(t, kind)
		before := len(b.core.Log.Entries())
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		failure := b.makeChange(ctx, t, kind, b.call(d))
		require.NotNil(t, failure)
		require.Equal(t, autopost.Transient, failure.Category)
		require.Len(t, b.core.Log.Entries(), before)
	}
}

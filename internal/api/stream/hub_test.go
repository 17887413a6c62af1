package stream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/api/stream"
)

// store returns what a test puts in it, once.
type store struct {
	mu    sync.Mutex
	next  stream.Read
	err   error
	reads []time.Time
	asked [][]stream.Watched
}

func (s *store) StreamItems(_ context.Context, watched []stream.Watched, _ json.RawMessage) (stream.Read, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads = append(s.reads, time.Now())
	s.asked = append(s.asked, watched)
	if s.err != nil {
		return stream.Read{}, s.err
	}
	read := s.next
	read.Position = json.RawMessage(`{}`)
	s.next = stream.Read{}
	return read, nil
}

func (s *store) put(read stream.Read) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = read
}

func (s *store) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.reads)
}

// row is a change of the workspace w.
func row(id string) stream.Row {
	return stream.Row{WorkspaceID: "w", Kind: "submission", ID: id, At: time.Now(), Data: json.RawMessage(`{"id": "` + id + `"}`)}
}

func rows(ids ...string) (read stream.Read) {
	for _, id := range ids {
		read.Items = append(read.Items, row(id))
	}
	return read
}

// run runs a hub for the time of a test on the fake clock.
func run(t *testing.T, test func(*testing.T, *store, *stream.Hub, chan struct{})) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, wake := &store{}, make(chan struct{}, 1)
		h := stream.New(stream.Config{Store: s, Wake: wake, Log: slog.New(slog.DiscardHandler)})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- h.Run(ctx) }()
		synctest.Wait()
		test(t, s, h, wake)
		cancel()
		require.NoError(t, <-ended)
		_, err := h.Open(reader("w"), "")
		require.ErrorIs(t, err, stream.ErrClosed)
	})
}

func reader(workspace string) stream.Reader {
	return stream.Reader{WorkspaceID: workspace, Holder: "key", KeyID: "key"}
}

func open(t *testing.T, h *stream.Hub, after string) *stream.Stream {
	t.Helper()
	s, err := h.Open(reader("w"), after)
	require.NoError(t, err)
	return s
}

// pass lets time pass on the fake clock.
func pass(d time.Duration) { <-time.After(d) }

// next returns the kinds or texts of the next items, and the id of the last.
func next(t *testing.T, s *stream.Stream) (got []string, last string) {
	t.Helper()
	for _, item := range s.Next(t.Context(), time.Minute) {
		text := item.Kind
		if item.Kind != stream.Reset {
			var data struct{ ID string }
			require.NoError(t, json.Unmarshal(item.Data, &data))
			text = data.ID
		}
		got, last = append(got, text), item.ID
	}
	return got, last
}

func TestAStreamBeginsWithAResetAndGetsEachChangeOnce(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, s *store, h *stream.Hub, _ chan struct{}) {
		require.Zero(t, s.count(), "without a stream nothing is read")
		a := open(t, h, "")
		got, _ := next(t, a)
		require.Equal(t, []string{stream.Reset}, got)
		b := open(t, h, "")
		got, _ = next(t, b)
		require.Equal(t, []string{stream.Reset}, got)
		changes := rows("1", "2")
		s.put(changes)
		got, _ = next(t, a)
		require.Equal(t, []string{"1", "2"}, got)
		got, _ = next(t, b)
		require.Equal(t, []string{"1", "2"}, got)
		changes.Items = append(changes.Items, row("3")) // a read returns late changes with earlier ones
		s.put(changes)
		got, _ = next(t, a)
		require.Equal(t, []string{"3"}, got)
		other := rows("4")
		other.Items[0].WorkspaceID = "other"
		s.put(other)
		require.Empty(t, a.Next(t.Context(), 5*time.Second), "of another workspace")
		a.Close()
		a.Close()
		b.Close()
	})
}

// Two hundred streams cost one read a second, whatever wakes the hub, and nothing when they are gone.
func TestManyStreamsCostOneReadASecond(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, s *store, h *stream.Hub, wake chan struct{}) {
		var all []*stream.Stream
		for n := range stream.PerWorkspace {
			one, err := h.Open(stream.Reader{WorkspaceID: "w", Holder: fmt.Sprint(n / stream.PerHolder)}, "")
			require.NoError(t, err)
			all = append(all, one)
		}
		for range 1000 {
			pass(10 * time.Millisecond)
			select {
			case wake <- struct{}{}:
			default:
			}
		}
		require.InDelta(t, 10, s.count(), 2)
		before := s.count()
		pass(30 * time.Second)
		require.InDelta(t, 20, s.count()-before, 1, "without a wake-up it reads every 1.5 seconds")
		for _, one := range all {
			one.Close()
		}
		pass(time.Minute)
		before = s.count()
		pass(time.Minute)
		require.Equal(t, before, s.count())
		for i := range s.reads {
			for j := range i {
				require.GreaterOrEqual(t, s.reads[i].Sub(s.reads[j]), time.Duration(i-j-1)*time.Second, "one read a second, and one more")
			}
		}
	})
}

func TestAStreamContinuesOrBeginsWithAReset(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, s *store, h *stream.Hub, _ chan struct{}) {
		a := open(t, h, "")
		next(t, a)
		s.put(rows("1"))
		_, one := next(t, a)
		a.Close()
		s.put(rows("2", "3"))
		pass(3 * time.Second)
		a = open(t, h, one)
		got, three := next(t, a)
		require.Equal(t, []string{"2", "3"}, got, "nothing was lost")
		a.Close()
		a = open(t, h, three)
		require.Empty(t, a.Next(t.Context(), 5*time.Second))
		a.Close()
		for _, after := range []string{"other-1", "x", three + "9", "0"} {
			a = open(t, h, after)
			got, _ = next(t, a)
			require.Equal(t, []string{stream.Reset}, got, after)
			a.Close()
		}
		pass(2 * time.Minute) // nothing reads the workspace any more
		a = open(t, h, three)
		got, last := next(t, a)
		require.Equal(t, []string{stream.Reset}, got)
		s.put(stream.Read{Lost: []string{"w"}})
		got, lost := next(t, a)
		require.Equal(t, []string{stream.Reset}, got, "too many changes at once")
		a.Close()
		a = open(t, h, last)
		got, _ = next(t, a)
		require.Equal(t, []string{stream.Reset}, got)
		a.Close()
		a = open(t, h, lost)
		require.Empty(t, a.Next(t.Context(), 5*time.Second))
		a.Close()
	})
}

// A slow reader costs a bounded amount of memory: what waits is replaced.
func TestASlowReaderGetsAReset(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, s *store, h *stream.Hub, _ chan struct{}) {
		a := open(t, h, "")
		next(t, a)
		var ids []string
		for n := range 300 {
			ids = append(ids, fmt.Sprint(n))
		}
		s.put(rows(ids...))
		pass(3 * time.Second)
		got, _ := next(t, a)
		require.Equal(t, stream.Reset, got[0])
		require.Less(t, len(got), 60)
		require.Equal(t, "299", got[len(got)-1])
		a.Close()
	})
}

func TestStreamsAreBounded(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, _ *store, h *stream.Hub, _ chan struct{}) {
		var all []*stream.Stream
		refused := func(workspace, holder, of string) {
			_, err := h.Open(stream.Reader{WorkspaceID: workspace, Holder: holder}, "")
			tooMany := (*stream.TooManyError)(nil)
			require.ErrorAs(t, err, &tooMany)
			require.Equal(t, of, tooMany.Of)
		}
		for n := range stream.PerDaemon {
			if n == stream.PerHolder {
				refused("w0", "0", "key")
			}
			if n == stream.PerWorkspace {
				refused("w0", "fresh", "workspace")
			}
			one, err := h.Open(stream.Reader{WorkspaceID: fmt.Sprint("w", n/stream.PerWorkspace), Holder: fmt.Sprint(n / stream.PerHolder)}, "")
			require.NoError(t, err)
			all = append(all, one)
		}
		refused("fresh", "fresh", "daemon")
		all[0].Close()
		one, err := h.Open(stream.Reader{WorkspaceID: "fresh", Holder: "fresh"}, "")
		require.NoError(t, err)
		for _, s := range append(all, one) {
			s.Close()
		}
	})
}

// A stream ends with its key. After an outage it goes on without a gap.
func TestAStreamEndsWithItsKey(t *testing.T) {
	t.Parallel()
	run(t, func(t *testing.T, s *store, h *stream.Hub, _ chan struct{}) {
		a := open(t, h, "")
		next(t, a)
		s.mu.Lock()
		s.err = errors.New("down")
		s.mu.Unlock()
		pass(time.Minute)
		s.mu.Lock()
		s.err = nil
		s.next = rows("1")
		s.mu.Unlock()
		got, _ := next(t, a)
		require.Equal(t, []string{"1"}, got)
		require.Equal(t, []stream.Watched{{WorkspaceID: "w", KeyID: "key"}}, s.asked[0])
		s.put(stream.Read{Ended: []string{"key"}})
		require.Empty(t, a.Next(t.Context(), time.Minute))
		<-a.Done()
		a.Close()
	})
}

package live

import (
	"context"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// Delay is the time until the first byte of a post's call arrived.
type Delay struct {
	// FromRequest counts from the start of the push.
	FromRequest time.Duration
	// FromAnswer counts from the answer of the push. It is negative if the call was faster.
	FromAnswer time.Duration
}

// Steady pushes posts at equal intervals and does not wait for their answers. It returns the
// delay of each post after all calls have arrived. push must put the mark into the text of
// post n.
func (p *Platform) Steady(ctx context.Context, period time.Duration, posts int, push func(ctx context.Context, n int, mark string) error) ([]Delay, error) {
	seen := p.Calls()
	marks := make(map[string]int, posts)
	asked, answered := make([]time.Time, posts), make([]time.Time, posts)
	began := time.Now()
	pushes, pushing := errgroup.WithContext(ctx)
	for n := range posts {
		mark := fmt.Sprintf("mark-%d-%d.", began.UnixNano(), n)
		marks[mark] = n
		pushes.Go(func() error {
			select {
			case <-time.After(time.Until(began.Add(time.Duration(n) * period))):
			case <-pushing.Done():
				return pushing.Err()
			}
			asked[n] = time.Now()
			err := push(pushing, n, mark)
			answered[n] = time.Now()
			return err
		})
	}
	if err := pushes.Wait(); err != nil {
		return nil, err
	}
	delays := make([]Delay, posts)
	for len(marks) > 0 {
		arrived, err := p.after(ctx, seen)
		if err != nil {
			return nil, fmt.Errorf("%d of %d posts did not arrive: %w", len(marks), posts, err)
		}
		seen += len(arrived)
		for _, a := range arrived {
			if n, ok := marks[markOf(a.Body)]; ok {
				delete(marks, markOf(a.Body))
				delays[n] = Delay{a.At.Sub(asked[n]), a.At.Sub(answered[n])}
			}
		}
	}
	return delays, nil
}

// markOf returns the mark in the body of a call.
func markOf(body string) string {
	at := max(0, strings.Index(body, "mark-"))
	mark, _, _ := strings.Cut(body[at:], ".")
	return mark + "."
}

// after waits for more than seen calls and returns the new ones.
func (p *Platform) after(ctx context.Context, seen int) ([]Arrival, error) {
	for {
		p.mu.Lock()
		changed, arrived := p.changed, p.arrivals[min(seen, len(p.arrivals)):]
		p.mu.Unlock()
		if len(arrived) > 0 {
			return arrived, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

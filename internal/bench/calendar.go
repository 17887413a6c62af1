package bench

import (
	"context"
	"errors"
	"fmt"
)

// The calendar has a hundred channels. Its deliveries are spread so evenly that a month has a thousandth of them.
const (
	calendarChannels = 100
	calendarMonth    = `select autopost.calendar($1, now() - interval '15 days', now() + interval '15 days', null)`
)

// onSomeDay is a time of a message within so many days, the same for all its channels.
func onSomeDay(days int) string {
	return fmt.Sprintf(`make_interval(secs => abs(hashtext(m.message_id::text)::bigint) %% (86400 * %d::bigint))`, days)
}

// calendar measures the calendar of one month: half of it sent, half of it waiting, beside all the others.
func (b *bench) calendar(ctx context.Context) (result Result, err error) {
	b.printf("  %s deliveries, %s of them in the month", thousands(fmt.Sprint(b.planned)), thousands(fmt.Sprint(b.planned/1000)))
	base, err := b.migrated(ctx, "calendar")
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, base.close(ctx)) }()
	q, err := b.queue(ctx, base, "calendar", everyLimit(min(b.channels, calendarChannels)))
	if err != nil {
		return result, err
	}
	const days = 15 * 1000
	posts := max(2, b.planned/q.shape.channels)
	past := `now() - ` + onSomeDay(days)
	if _, err := base.copies(ctx, q.workspace, q.pattern, posts/2, "true", map[string]string{
		"status": `'sent'`, "sent_at": past, "finished_at": past, "created_at": past, "not_before": past, "provider_message_id": `'1'`, "attempt": `1`, "rendered_text": `''`, "render_meta": `'{}'`,
	}); err != nil {
		return result, err
	}
	if _, err := base.copies(ctx, q.workspace, q.pattern, posts-posts/2, "true", map[string]string{
		"scheduled_for": `now() + ` + onSomeDay(days), "rendered_text": `''`, "render_meta": `'{}'`,
	}); err != nil {
		return result, err
	}
	if err := base.settle(ctx); err != nil {
		return result, err
	}
	var times, buffers []float64
	for range 3 + 2*b.rounds { // the first ones read the pages of the month
		c, err := explain(ctx, base, calendarMonth, q.workspace)
		if err != nil {
			return result, err
		}
		times, buffers = append(times, c.ms), append(buffers, c.buffers)
	}
	result.Checks = []Check{atMost(50, figure("a month of all channels", "ms", times[3:]...))}
	result.Figures = []Figure{figure("  buffers", "", buffers[3:]...), figure("the first time", "ms", times[0])}
	return result, nil
}

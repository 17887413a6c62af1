package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"autopost/internal/pg"
	"autopost/internal/sim"
	"autopost/internal/sim/maxmessenger"
)

// demoAddedTags are the tags of posts for the added channel. The last two exclude some other
// channels.
var demoAddedTags = []string{"opening", "sport", "shop"}

// criterionNewChannel inserts one row and sends a post that names no channel.
func (d *demo) criterionNewChannel(ctx context.Context) (string, error) {
	like, err := d.channel(ctx, "max-news-01")
	if err != nil {
		return "", err
	}
	number, err := strconv.ParseInt(d.run, 16, 64)
	if err != nil {
		return "", err
	}
	d.added = "max-new-" + d.run
	row := like
	row.ChannelID, row.TargetID = d.added, strconv.FormatInt(-72_000_000_000-number, 10)
	title := "Новый канал"
	row.Title = &title
	if err := d.addChat(row); err != nil {
		return "", err
	}
	err = d.rows(ctx, fmt.Sprintf(`insert into autopost.channels (workspace_id, channel_id, platform, target_id, auth_ref, rate_group, title, route_filter)
		values (%s, %s, 'max', %s, %s, %s, %s, '{"include_any": ["opening"]}')`, sqlText(workspaceID), sqlText(d.added),
		sqlText(row.TargetID), sqlText(row.AuthRef), sqlText(row.RateGroup), sqlText(title)))
	if err != nil {
		return "", err
	}
	d.report.clock(time.Now(), "row inserted: channel %s; the daemon was not restarted", d.added)
	answer, err := d.push(ctx, post{
		SourceRef: "opening-" + d.run, Text: "**Открытие** нового канала, выпуск " + d.run, ParseMode: "Markdown", Tags: demoAddedTags,
	})
	if err != nil {
		return "", err
	}
	d.report.clock(answer.sentAt, "webhook: %d %s, %d deliveries, message %s", answer.code, answer.Status, answer.Enqueued, answer.MessageID)
	rows, err := d.awaitMessage(ctx, answer.MessageID, d.added)
	if err != nil {
		return "", err
	}
	arrived := d.received(row, answer.sentAt)
	if len(arrived) != 1 || !arrived[0].Accepted {
		return "", fmt.Errorf("the chat of the new channel got %d messages of the next post, not 1", len(arrived))
	}
	d.printArrivals(arrived)
	return fmt.Sprintf("delivery %s is %s; first byte %d ms after the request", rows[d.added].DeliveryID, rows[d.added].Status,
		arrived[0].Start.Sub(answer.sentAt).Milliseconds()), nil
}

// criterionRetryAfter makes the platform answer 429 twice with a wait. Another channel of the
// same credential must not wait.
func (d *demo) criterionRetryAfter(ctx context.Context) (string, error) {
	limited, err := d.channel(ctx, "tg-city-01")
	if err != nil {
		return "", err
	}
	other, err := d.channel(ctx, "tg-city-02")
	if err != nil {
		return "", err
	}
	defer d.sims.Faults.Clear()
	for n, seconds := range []int{1, 2} {
		if err := d.sims.Faults.Add(sim.Fault{
			Platform: limited.Platform, Chat: limited.TargetID, From: n + 1, To: n + 1,
			Effect: sim.EffectStatus, Status: http.StatusTooManyRequests, RetryAfter: seconds,
		}); err != nil {
			return "", err
		}
	}
	answer, err := d.push(ctx, only("limited-"+d.run, "Под ограничением, выпуск "+d.run, limited.ChannelID, other.ChannelID))
	if err != nil {
		return "", err
	}
	held, err := d.watchRetries(ctx, answer.MessageID, limited.ChannelID)
	if err != nil {
		return "", err
	}
	rows, err := d.awaitMessage(ctx, answer.MessageID, limited.ChannelID, other.ChannelID)
	if err != nil {
		return "", err
	}
	events, err := d.events(ctx, pg.EventFilter{DeliveryID: rows[limited.ChannelID].DeliveryID})
	if err != nil {
		return "", err
	}
	arrived := d.received(limited, answer.sentAt)
	d.printEvents(events)
	d.printArrivals(arrived)
	if err := judgeRetries(held, events, arrived); err != nil {
		return "", err
	}
	otherArrived := d.received(other, answer.sentAt)
	if len(otherArrived) != 1 || !otherArrived[0].Start.Before(arrived[1].Start) {
		return "", errors.New("another channel of the same credential waited, too")
	}
	return fmt.Sprintf("attempts 1, 2, 3; waits of %.2f s and %.2f s (requested: 1 s and 2 s), no call in between; then %s; the other channel got its post after %d ms",
		arrived[1].Start.Sub(arrived[0].Start).Seconds(), arrived[2].Start.Sub(arrived[1].Start).Seconds(), rows[limited.ChannelID].Status,
		otherArrived[0].Start.Sub(answer.sentAt).Milliseconds()), nil
}

// watchRetries collects the waiting states of the row until it is settled.
func (d *demo) watchRetries(ctx context.Context, messageID, channelID string) ([]pg.DeliveryRow, error) {
	var held []pg.DeliveryRow
	err := await(ctx, "the delivery is settled after its retries", func(ctx context.Context) (bool, error) {
		rows, err := d.store.ListDeliveries(ctx, workspaceID, pg.DeliveryFilter{MessageID: messageID, ChannelID: channelID}, 1)
		if err != nil || len(rows) != 1 {
			return false, err
		}
		if row := rows[0]; row.Status == "retry" && (len(held) == 0 || held[len(held)-1].Attempt != row.Attempt) && row.NextRetryAt != nil {
			held = append(held, row)
			d.report.clock(time.Now(), "row: status %s, attempt %d, next_retry_at %s", row.Status, row.Attempt, row.NextRetryAt.Local().Format("15:04:05.000"))
		}
		return settled(rows[0]), nil
	})
	return held, err
}

// judgeRetries checks rows, events and the log of the simulators after two 429 answers.
func judgeRetries(held []pg.DeliveryRow, events []pg.EventRow, arrived []sim.Entry) error {
	var actions []string
	for _, e := range events {
		if e.Action != "cooldown" {
			actions = append(actions, e.Action+" "+strconv.Itoa(e.Attempt))
		}
	}
	want := []string{"send_attempt 1", "retry_scheduled 1", "send_attempt 2", "retry_scheduled 2", "send_attempt 3", "sent 3"}
	switch {
	case !slices.Equal(actions, want):
		return fmt.Errorf("unexpected events: %s", strings.Join(actions, ", "))
	case len(held) != 2 || held[0].Attempt != 1 || held[1].Attempt != 2:
		return fmt.Errorf("the row waited %d times, not after attempts 1 and 2", len(held))
	case !held[1].NextRetryAt.After(*held[0].NextRetryAt):
		return errors.New("next_retry_at did not grow")
	case len(arrived) != 3 || arrived[0].Status != http.StatusTooManyRequests || arrived[1].Status != http.StatusTooManyRequests || !arrived[2].Accepted:
		return fmt.Errorf("the chat got %d calls, not two rejected ones and one accepted", len(arrived))
	}
	for n, call := range arrived[:2] {
		requested := time.Duration(call.RetryAfter) * time.Second
		if gap := arrived[n+1].Start.Sub(call.End); gap < requested {
			return fmt.Errorf("call %d came after %s, but the platform requested a wait of %s", n+2, gap, requested)
		}
	}
	return nil
}

// criterionDedup sends the same content twice, then a control post. When the control post has
// arrived, a repeat would have arrived, too.
func (d *demo) criterionDedup(ctx context.Context) (string, error) {
	var channels []pg.ChannelRow
	var ids []string
	for _, id := range []string{"tg-news-01", "max-news-01"} {
		c, err := d.channel(ctx, id)
		if err != nil {
			return "", err
		}
		channels, ids = append(channels, c), append(ids, id)
	}
	text := "Одно и то же, выпуск " + d.run
	first, err := d.push(ctx, only("first-"+d.run, text, ids...))
	if err != nil {
		return "", err
	}
	d.report.clock(first.sentAt, "webhook: %d %s, %d enqueued, %d deduped", first.code, first.Status, first.Enqueued, first.Deduped)
	rows, err := d.awaitMessage(ctx, first.MessageID, ids...)
	if err != nil {
		return "", err
	}
	repeat, err := d.push(ctx, only("repeat-"+d.run, text+"  ", ids...))
	if err != nil {
		return "", err
	}
	d.report.clock(repeat.sentAt, "webhook: %d %s, %d enqueued, %d deduped (the same content with another source_ref)", repeat.code, repeat.Status, repeat.Enqueued, repeat.Deduped)
	control, err := d.push(ctx, only("after-"+d.run, "Кое-что другое, выпуск "+d.run, ids...))
	if err != nil {
		return "", err
	}
	d.report.clock(control.sentAt, "webhook: %d %s, %d enqueued (the control post: other content)", control.code, control.Status, control.Enqueued)
	if _, err := d.awaitMessage(ctx, control.MessageID, ids...); err != nil {
		return "", err
	}
	events, err := d.events(ctx, pg.EventFilter{MessageID: first.MessageID, Action: "dedup_suppressed"})
	if err != nil {
		return "", err
	}
	d.printEvents(events)
	for _, c := range channels {
		arrived := d.received(c, first.sentAt)
		d.printArrivals(arrived)
		if len(arrived) != 2 || rows[c.ChannelID].Status != "sent" {
			return "", fmt.Errorf("channel %s got %d messages, not the first post and the control post", c.ChannelID, len(arrived))
		}
	}
	if repeat.Enqueued != 0 || repeat.Deduped != 2 || repeat.MessageID != first.MessageID || len(events) != 2 {
		return "", fmt.Errorf("the repeat was not suppressed: %+v, %d events", repeat, len(events))
	}
	return "each channel got 2 messages: the first post and the control post; the repeat was suppressed (2 dedup_suppressed events) and reached no platform", nil
}

// criterionBadChannel makes the platform reject the added channel: twice with 403, then with
// 404. A changed row resumes the channel in between.
func (d *demo) criterionBadChannel(ctx context.Context) (string, error) {
	if d.added == "" {
		return "", errors.New("the first criterion did not add a channel")
	}
	good := []string{"tg-news-02", "max-news-02"}
	bad, err := d.channel(ctx, d.added)
	if err != nil {
		return "", err
	}
	chat, err := strconv.ParseInt(bad.TargetID, 10, 64)
	if err != nil {
		return "", err
	}
	defer d.sims.Faults.Clear()
	since := time.Now()
	d.sims.MAX.SetAccess(chat, maxmessenger.AccessNone)
	for round := 1; round <= 3; round++ {
		if round == 3 {
			if err := d.sims.Faults.Add(sim.Fault{
				Platform: bad.Platform, Chat: bad.TargetID, Effect: sim.EffectStatus, Status: http.StatusNotFound,
				Code: "chat.not.found", Description: "Chat " + bad.TargetID + " not found",
			}); err != nil {
				return "", err
			}
		}
		if err := d.loseChannel(ctx, round, good); err != nil {
			return "", err
		}
		if round < 3 {
			err := d.rows(ctx, fmt.Sprintf(`update autopost.channels set paused_until = null where workspace_id = %s and channel_id = %s`,
				sqlText(workspaceID), sqlText(d.added)))
			if err != nil {
				return "", err
			}
			d.report.clock(time.Now(), "resumed by SQL: update autopost.channels set paused_until = null …")
		}
	}
	events, err := d.events(ctx, pg.EventFilter{ChannelID: d.added, Since: since.UTC()})
	if err != nil {
		return "", err
	}
	d.printEvents(events)
	d.printArrivals(d.received(bad, since))
	if n := counted(events); n["failed_permanent"] != 3 || n["channel_paused"] < 2 || n["channel_disabled"] != 1 {
		return "", fmt.Errorf("unexpected events of the channel: %v", n)
	}
	post := only("others-"+d.run, "Остальные работают, выпуск "+d.run, append(good, d.added)...)
	post.Tags = demoAddedTags
	last, err := d.push(ctx, post)
	if err != nil {
		return "", err
	}
	if _, err := d.awaitMessage(ctx, last.MessageID, good...); err != nil {
		return "", err
	}
	if last.Enqueued != len(good) {
		return "", fmt.Errorf("the next post went to %d channels, not to the %d good ones", last.Enqueued, len(good))
	}
	return "3 deliveries failed_permanent; channel_paused at once, channel_disabled after the third; the other channels got all 4 posts", nil
}

// loseChannel sends a post to the bad channel and to good ones, and checks the rows.
func (d *demo) loseChannel(ctx context.Context, round int, good []string) error {
	post := only(fmt.Sprintf("bad-%s-%d", d.run, round), fmt.Sprintf("Плохой канал, %d/%s", round, d.run), append(good, d.added)...)
	post.Tags = demoAddedTags
	answer, err := d.push(ctx, post)
	if err != nil {
		return err
	}
	rows, err := d.awaitMessage(ctx, answer.MessageID, append(good, d.added)...)
	if err != nil {
		return err
	}
	row, err := d.channel(ctx, d.added)
	if err != nil {
		return err
	}
	d.report.clock(time.Now(), "round %d: %s is %s; channel paused: %t, enabled: %t, error_streak: %d; %s and %s are %s and %s", round, d.added,
		rows[d.added].Status, row.Paused, row.Enabled, row.ErrorStreak, good[0], good[1], rows[good[0]].Status, rows[good[1]].Status)
	switch {
	case rows[d.added].Status != "failed_permanent":
		return fmt.Errorf("round %d: the delivery is %s", round, rows[d.added].Status)
	case !row.Paused || row.ErrorStreak != round || row.Enabled != (round < 3):
		return fmt.Errorf("round %d: the channel is paused: %t, enabled: %t, error_streak: %d", round, row.Paused, row.Enabled, row.ErrorStreak)
	case rows[good[0]].Status != "sent" || rows[good[1]].Status != "sent":
		return fmt.Errorf("round %d: the other channels did not get the post", round)
	}
	return nil
}

func counted(events []pg.EventRow) map[string]int {
	n := map[string]int{}
	for _, e := range events {
		n[e.Action]++
	}
	return n
}

// printEvents prints events as evidence.
func (d *demo) printEvents(events []pg.EventRow) {
	for _, e := range events {
		var failure struct{ Code, Message string }
		var meta struct {
			NextRetryAt *time.Time `json:"next_retry_at"`
		}
		// Both are optional.
		_ = json.Unmarshal(e.Error, &failure)
		_ = json.Unmarshal(e.Meta, &meta)
		detail := strings.TrimSpace(failure.Code + " " + failure.Message)
		if meta.NextRetryAt != nil {
			detail += "; next_retry_at " + meta.NextRetryAt.Local().Format("15:04:05.000")
		}
		channel := ""
		if e.ChannelID != nil {
			channel = *e.ChannelID
		}
		d.report.clock(e.TS, "event %-16s %-14s attempt %d  %s", e.Action, channel, e.Attempt, detail)
	}
}

// printArrivals prints the log of the simulators as evidence.
func (d *demo) printArrivals(entries []sim.Entry) {
	for _, e := range entries {
		detail := "accepted as " + strings.Join(e.MessageIDs, ", ")
		if !e.Accepted {
			detail = e.Reason
		}
		d.report.clock(e.Start, "simulator: %s %s to %s: %d %s", e.Platform, e.Method, e.Chat, e.Status, detail)
	}
}

package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"

	"autopost/internal/pg"
)

// pushed and fed are the numbers of posts by webhook and by feed.
const (
	pushed = 20
	fed    = 5
)

// demoThemes are the subjects of the posts. The tags select the channels.
var demoThemes = []struct {
	tags        []string
	title, text string
}{
	{[]string{"sport", "ru"}, "Матч дня", "Счёт открыли на 12-й минуте: «Волга» — «Заря» 2:1"},
	{[]string{"culture", "ru"}, "Выставка недели", "Импрессионисты & авангард: залы открыты до 21:00"},
	{[]string{"city"}, "Городские новости", "Мост через реку откроют для пешеходов в субботу"},
	{[]string{"shop"}, "Скидки", "Книги и карты — цены ниже на 15 % до конца месяца"},
}

// loadPost returns webhook post n. The posts have three kinds of markup, some have pictures,
// one has an album, and one text is too long for one of the platforms.
func (d *demo) loadPost(n int) post {
	theme := demoThemes[n%len(demoThemes)]
	post := post{SourceRef: fmt.Sprintf("cms-%s-%d", d.run, n), Tags: theme.tags}
	name := fmt.Sprintf("%s № %d/%s", theme.title, n, d.run)
	link := fmt.Sprintf("https://example.org/%s/%d", d.run, n)
	switch n % 3 {
	case 0:
		post.ParseMode = "HTML"
		post.Text = fmt.Sprintf("<b>%s</b>\n\n%s. <i>Подробности</i> — <a href=\"%s\">на сайте</a>", name, strings.ReplaceAll(theme.text, "&", "&amp;"), link)
	case 1:
		post.ParseMode = "Markdown"
		post.Text = fmt.Sprintf("**%s**\n\n%s. ~~Вчера~~ [сегодня](%s)", name, theme.text, link)
	default:
		post.Text, post.Link = name+"\n\n"+theme.text, link
	}
	picture := func(k int) media {
		return media{Type: "image", URL: fmt.Sprintf("%s/files/photo-%d.jpg", d.simURL, k)}
	}
	switch n {
	case 4, 9, 14:
		post.Media = []media{picture(n)}
	case 12:
		post.Media = []media{picture(1), picture(2)}
	case 17:
		// Telegram takes 4,096 characters, MAX 4,000.
		post.Link, post.Text = "", name+" "+strings.Repeat("ы", 4_050-len([]rune(name)))
	}
	return post
}

// feed returns the RSS document with the posts of the feed.
func (d *demo) feed() []byte {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?><rss version="2.0"><channel><title>Лента</title><link>https://example.org/</link>`)
	for n := range fed {
		fmt.Fprintf(&b, `<item><guid isPermaLink="false">feed-%s-%d</guid><title>Из ленты № %d/%s</title><link>https://example.org/feed/%s/%d</link>`+
			`<description>Событие &amp; подробности, выпуск %d</description><category>city</category><pubDate>%s</pubDate></item>`,
			d.run, n, n, d.run, d.run, n, n, time.Now().Add(time.Duration(n-fed)*time.Minute).UTC().Format(time.RFC1123Z))
	}
	b.WriteString(`</channel></rss>`)
	return []byte(b.String())
}

// load sends 25 posts to 40 channels, waits until all are sent, and compares the rows with
// the log of the simulators.
func (d *demo) load(ctx context.Context) (string, error) {
	before, err := d.store.ListChannels(ctx, workspaceID, 10_000)
	if err != nil {
		return "", err
	}
	waiting, err := d.waiting(ctx)
	if err != nil {
		return "", err
	}
	began := time.Now()
	d.sims.Feeds.Set("news.xml", "application/rss+xml", d.feed())
	if err := d.rows(ctx, `update autopost.pull_sources set enabled = true where workspace_id = 'demo' and source_id = 'feed'`); err != nil {
		return "", err
	}
	expected := 0
	for range fed {
		expected += routed(before, []string{"feed", "city"})
	}
	for n := range pushed {
		post := d.loadPost(n)
		if _, err := d.push(ctx, post); err != nil {
			return "", err
		}
		expected += routed(before, post.Tags)
	}
	d.report.line("   %d posts by webhook, %d by feed (polled every second)", pushed, fed)
	enqueued, err := d.awaitEnqueued(ctx, began)
	if err != nil {
		return "", err
	}
	d.report.line("   all enqueued %.1f s after the first request; routing selects %d of %d pairs of post and channel",
		time.Since(began).Seconds(), expected, (pushed+fed)*len(before))
	held, err := d.held(ctx, enqueued, before)
	if err != nil {
		return "", err
	}
	if err := d.drain(ctx, enqueued.enqueued-held, waiting+held); err != nil {
		return "", err
	}
	return d.judgeLoad(ctx, loadResult{began: began, channels: before, expected: expected, totals: enqueued})
}

// totals are the counts of the enqueue events.
type totals struct {
	messages                            map[string]bool
	enqueued, deduped, invalid, skipped int
}

// awaitEnqueued waits for the enqueue event of every post, also of those from the feed and
// those with media to download.
func (d *demo) awaitEnqueued(ctx context.Context, since time.Time) (totals, error) {
	var t totals
	err := await(ctx, fmt.Sprintf("%d posts are enqueued", pushed+fed), func(ctx context.Context) (bool, error) {
		events, err := d.events(ctx, pg.EventFilter{Action: "enqueue", Since: since.UTC()})
		t = totals{messages: map[string]bool{}}
		for _, e := range events {
			var counts struct{ Enqueued, Deduped, Invalid, Skipped int }
			if err := json.Unmarshal(e.Meta, &counts); err != nil || e.MessageID == nil {
				return false, fmt.Errorf("an enqueue event lacks counts or message: %s", e.Meta)
			}
			t.messages[*e.MessageID] = true
			t.enqueued += counts.Enqueued
			t.deduped += counts.Deduped
			t.invalid += counts.Invalid
			t.skipped += counts.Skipped
		}
		return len(t.messages) >= pushed+fed, err
	})
	return t, err
}

// held counts the deliveries that wait in paused channels.
func (d *demo) held(ctx context.Context, t totals, channels []pg.ChannelRow) (int, error) {
	paused := map[string]bool{}
	for _, c := range channels {
		paused[c.ChannelID] = c.Paused
	}
	rows, err := d.deliveriesOf(ctx, t.messages)
	n := 0
	for _, row := range rows {
		if paused[row.ChannelID] && !settled(row) {
			n++
		}
	}
	return n, err
}

// waiting counts the deliveries of the workspace that are not settled.
func (d *demo) waiting(ctx context.Context) (int, error) {
	rows, err := d.store.QueueSnapshot(ctx, workspaceID)
	n := 0
	for _, row := range rows {
		if row.Status != "dead" && row.Status != "failed_permanent" {
			n += int(row.Deliveries)
		}
	}
	return n, err
}

// drain shows the progress until at most rest deliveries wait.
func (d *demo) drain(ctx context.Context, deliveries, rest int) error {
	bar := demoBar(deliveries)
	return poll(ctx, 200*time.Millisecond, "all deliveries except those of paused channels are settled", func(ctx context.Context) (bool, error) {
		n, err := d.waiting(ctx)
		if err != nil {
			return false, err
		}
		_ = bar.Set(deliveries - (n - rest)) // the bar is only decoration
		return n <= rest, nil
	})
}

// deliveriesOf returns the deliveries of the named messages.
func (d *demo) deliveriesOf(ctx context.Context, messages map[string]bool) ([]pg.DeliveryRow, error) {
	rows, err := d.store.ListDeliveries(ctx, workspaceID, pg.DeliveryFilter{}, 10_000)
	return slices.DeleteFunc(rows, func(r pg.DeliveryRow) bool { return !messages[r.MessageID] }), err
}

// demoBar returns a progress bar. It is drawn only on a terminal.
func demoBar(total int) *progressbar.ProgressBar {
	w := io.Discard
	if info, err := os.Stderr.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
		w = os.Stderr
	}
	return progressbar.NewOptions(total, progressbar.OptionSetWriter(w), progressbar.OptionSetDescription("   delivered"),
		progressbar.OptionShowCount(), progressbar.OptionSetWidth(40), progressbar.OptionClearOnFinish())
}

// routed counts the enabled channels whose filter accepts the tags. It repeats the rule of
// route_filter on purpose, to check it.
func routed(channels []pg.ChannelRow, tags []string) int {
	has := func(tag string) bool { return slices.Contains(tags, tag) }
	n := 0
	for _, c := range channels {
		var filter struct {
			IncludeAny []string `json:"include_any"`
			IncludeAll []string `json:"include_all"`
			Exclude    []string `json:"exclude"`
		}
		if len(c.RouteFilter) > 0 && json.Unmarshal(c.RouteFilter, &filter) != nil {
			continue
		}
		lacks := slices.ContainsFunc(filter.IncludeAll, func(tag string) bool { return !has(tag) })
		if c.Enabled && !lacks && !slices.ContainsFunc(filter.Exclude, has) &&
			(len(filter.IncludeAny) == 0 || slices.ContainsFunc(filter.IncludeAny, has)) {
			n++
		}
	}
	return n
}

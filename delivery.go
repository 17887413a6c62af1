package autopost

import (
	"encoding/json"
	"maps"
	"slices"
	"time"
)

// Status is the state of a delivery. The trigger autopost.guard_transition enforces the allowed
// transitions.
type Status string

// The statuses of a delivery.
const (
	StatusQueued          Status = "queued"
	StatusClaimed         Status = "claimed"
	StatusSending         Status = "sending"
	StatusSent            Status = "sent"
	StatusRetry           Status = "retry"
	StatusDeduped         Status = "deduped"
	StatusFailedPermanent Status = "failed_permanent"
	StatusDead            Status = "dead"
)

// Platform is the key of a row of autopost.platforms, and of the adapter for it.
type Platform string

// The platforms that ship.
const (
	Telegram Platform = "telegram"
	MAX      Platform = "max"
	X        Platform = "x"
	YouTube  Platform = "youtube"
)

// Delivery is a claimed delivery: a row of autopost.claimed_delivery, leased to this daemon under
// ClaimToken until LeaseUntil.
type Delivery struct {
	WorkspaceID string
	DeliveryID  string
	MessageID   string
	ChannelID   string
	Platform    Platform
	// TargetID is the platform's chat or channel, "chat" or "chat:thread".
	TargetID   string
	AuthRef    string
	RateGroup  string
	Attempt    int
	ClaimToken string
	LeaseUntil time.Time
	// SendAt is the reserved slot; nil if neither the channel nor its rate group has a rate limit.
	SendAt *time.Time
	// RenderedText is in the platform's format. Adapters send it unchanged.
	RenderedText string
	RenderMeta   RenderMeta
	Payload      Payload
	// Settings are those of the channel (protect_content, disable_notification, …).
	Settings              json.RawMessage
	TraceID               string
	OnUnknown             string
	UnknownOutcomes       int
	LastCallAt            *time.Time
	LastProviderMessageID *string
	// KnownPosts is set only after an unknown outcome.
	KnownPosts *KnownPosts
	// DueAt is the time from which it may be sent. ScheduledFor is the requested time; nil means at
	// once.
	DueAt        time.Time
	ScheduledFor *time.Time
	// ClaimSize is the number of deliveries in the claim; 0 if unknown.
	ClaimSize int
}

// KnownPosts are the channel's other known posts. An adapter uses them to find the post of a call with
// unknown outcome.
type KnownPosts struct {
	// Before are the ids of the newest posts that existed when that call started.
	Before []string `json:"before"`
	// Others are the ids of all other posts made since shortly before that call.
	Others []string `json:"others"`
	// OthersInDoubt: another delivery of the channel has an unknown outcome too, so an unknown post may
	// belong to that one.
	OthersInDoubt bool `json:"others_in_doubt"`
}

// RenderMeta is the result of rendering, fixed when the delivery was enqueued.
type RenderMeta struct {
	// ParseMode is "HTML" if RenderedText is in the platform's HTML format, "" if it is plain text.
	ParseMode      string     `json:"parse_mode,omitempty"`
	DisablePreview bool       `json:"disable_preview,omitempty"`
	Buttons        [][]Button `json:"buttons,omitempty"`
	// Title is the heading of the post, on platforms that show one.
	Title string `json:"title,omitempty"`
	// Post holds platform-specific properties of the post. They override the channel's settings.
	Post Post `json:"post,omitzero"`
	// Video holds the properties of a video; nil on platforms for messages.
	Video *Video `json:"video,omitempty"`
	// Steps are the calls of this delivery, in order. At least one.
	Steps    []Step         `json:"steps"`
	Progress SeriesProgress `json:"series_progress"`
}

// Post holds properties that some platforms have. Nil and "" mean the channel's setting.
type Post struct {
	MadeWithAI      *bool `json:"made_with_ai,omitempty"`
	PaidPartnership *bool `json:"paid_partnership,omitempty"`
	// ReplySettings is who may reply: "everyone", "following", "mentionedUsers", "subscribers" or
	// "verified".
	ReplySettings string `json:"reply_settings,omitempty"`
}

// Video holds the properties of a video other than its title and text.
type Video struct {
	// Privacy is "public", "unlisted" or "private"; "private" if PublishAt is set.
	Privacy string `json:"privacy"`
	// PublishAt is when the platform makes the video public, in RFC 3339; "" means never.
	PublishAt string   `json:"publish_at,omitempty"`
	Tags      []string `json:"tags,omitempty"`
	// CategoryID is the platform's category id; "" means the platform's default.
	CategoryID string `json:"category_id,omitempty"`
	// Language is the language of title and description, a BCP 47 tag; "" if unknown.
	Language string `json:"language,omitempty"`
	// License is "youtube" or "creativeCommon"; "" means the platform's default.
	License        string `json:"license,omitempty"`
	MadeForKids    bool   `json:"made_for_kids,omitempty"`
	SyntheticMedia bool   `json:"synthetic_media,omitempty"`
	// Embeddable and NotifySubscribers are nil for the platform's default.
	Embeddable        *bool `json:"embeddable,omitempty"`
	NotifySubscribers *bool `json:"notify_subscribers,omitempty"`
	// PlaylistID is the playlist to which the video is added; "" means none.
	PlaylistID string `json:"playlist_id,omitempty"`
	// Captions are the subtitles, by the name of their step.
	Captions map[string]CaptionTrack `json:"captions,omitempty"`
}

// CaptionTrack describes subtitles.
type CaptionTrack struct {
	// Language is a BCP 47 tag ("en", "pt-BR").
	Language string `json:"language"`
	// Name is shown next to the language; may be empty.
	Name string `json:"name,omitempty"`
}

// Button opens a URL. Rows of buttons are shown below a message.
type Button struct {
	Text string `json:"text"`
	URL  string `json:"url"`
	// Data makes a button without URL, which reports who pressed it. Posts have no such buttons; messages of the shop
	// bot do.
	Data string `json:"payload,omitempty"`
}

// Step is one call that the platform acknowledges with one or more message ids.
type Step struct {
	// Name identifies the step within its delivery ("text", "media-1").
	Name string `json:"step"`
	// Text: the step carries the delivery's text, as the message if Items is empty, else as caption or
	// message text.
	Text bool `json:"text,omitempty"`
	// Body is this step's part of a split text, or the text of a later part or of the first comment; "" means
	// the whole RenderedText.
	Body string `json:"body,omitempty"`
	// Part is the number of the part of a thread, from 2; 0 is part 1.
	Part int `json:"part,omitempty"`
	// Comment: the step is the first comment of the post. If it fails for good, the post stays sent.
	Comment bool `json:"comment,omitempty"`
	// Aside: the step makes no message, so its ids are not message ids of the delivery. It uses the
	// rate slot of the step before it.
	Aside bool `json:"aside,omitempty"`
	// ReplyTo is the name of the step to whose message this one replies; "" means none.
	ReplyTo string `json:"reply_to,omitempty"`
	// Items are indexes into Payload.Media, in sending order.
	Items []int `json:"items,omitempty"`
	// Captions are the captions of the items in the same format; a nil entry means none. Same length as
	// Items, or absent.
	Captions []*string `json:"captions,omitempty"`
}

// SeriesProgress lists the steps of a delivery that the platform has acknowledged.
type SeriesProgress struct {
	// Steps are the ids of each acknowledged step, by its name.
	Steps              map[string][]string `json:"steps,omitempty"`
	SentItems          []int               `json:"sent_items,omitempty"`
	ProviderMessageIDs []string            `json:"provider_message_ids,omitempty"`
}

// StepText returns the text of a step; "" if it has none.
func (d Delivery) StepText(step Step) string {
	switch {
	case !step.Text:
		return ""
	case step.Body != "":
		return step.Body
	}
	return d.RenderedText
}

// MessageIDs returns the platform's ids of the delivery's messages, in the order of its steps. Ids of
// steps that make no message are excluded.
func (d Delivery) MessageIDs() []string {
	var ids []string
	for _, step := range d.RenderMeta.Steps {
		if !step.Aside {
			ids = append(ids, d.RenderMeta.Progress.Steps[step.Name]...)
		}
	}
	return ids
}

// PartIDs returns the platform's id of the first message of each part of the delivery, in their order. The
// first comment is not a part.
func (d Delivery) PartIDs() []string {
	var ids []string
	last := -1
	for _, step := range d.RenderMeta.Steps {
		known := d.RenderMeta.Progress.Steps[step.Name]
		if !step.Aside && !step.Comment && step.Part != last && len(known) > 0 {
			ids, last = append(ids, known[0]), step.Part
		}
	}
	return ids
}

// Done reports whether the platform has acknowledged the step.
func (p SeriesProgress) Done(step string) bool {
	_, ok := p.Steps[step]
	return ok
}

// With returns the progress after one more step. It does not change p.
func (p SeriesProgress) With(step Acknowledged) SeriesProgress {
	steps := maps.Clone(p.Steps)
	if steps == nil {
		steps = map[string][]string{}
	}
	steps[step.Step] = step.IDs
	return SeriesProgress{
		Steps:              steps,
		SentItems:          slices.Concat(p.SentItems, step.Items),
		ProviderMessageIDs: slices.Concat(p.ProviderMessageIDs, step.IDs),
	}
}

// Acknowledged is a step that the platform confirmed: the p_delta of autopost.record_series_progress.
type Acknowledged struct {
	Step  string   `json:"step"`
	IDs   []string `json:"ids"`
	Items []int    `json:"items,omitempty"`
}

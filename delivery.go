package autopost

import (
	"encoding/json"
	"maps"
	"slices"
	"time"
)

// Status is the state of a delivery; the table of allowed moves is enforced by
// the trigger autopost.guard_transition.
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

// Platform names a row of autopost.platforms and the adapter that speaks to it.
type Platform string

// The platforms that ship.
const (
	Telegram Platform = "telegram"
	MAX      Platform = "max"
	X        Platform = "x"
	YouTube  Platform = "youtube"
)

// Delivery is one claimed delivery: a row of autopost.claimed_delivery, leased
// to this daemon under ClaimToken until LeaseUntil.
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
	// SendAt is the reserved slot; nil when neither channel nor group is limited.
	SendAt *time.Time
	// RenderedText is the platform's dialect, ready to be sent verbatim.
	RenderedText string
	RenderMeta   RenderMeta
	Payload      Payload
	// Settings are the channel's (protect_content, disable_notification, …).
	Settings              json.RawMessage
	TraceID               string
	OnUnknown             string
	UnknownOutcomes       int
	LastCallAt            *time.Time
	LastProviderMessageID *string
	// KnownPosts are there after an unknown outcome alone.
	KnownPosts *KnownPosts
	// DueAt is since when it could go; ScheduledFor when its sender wanted it to, nil for at once.
	DueAt        time.Time
	ScheduledFor *time.Time
	// Together is how many deliveries its claim gave; 0 where nobody counted.
	Together int
}

// KnownPosts are the channel's other posts, as far as they are known, for an adapter that
// looks for the one of a call in doubt.
type KnownPosts struct {
	// Before are the ids of the newest that stood when that call began.
	Before []string `json:"before"`
	// Others are all ids of those made shortly before it, and since.
	Others []string `json:"others"`
	// OthersInDoubt says that the outcome of another delivery is unknown, too: not every
	// post that nobody knows is this one's.
	OthersInDoubt bool `json:"others_in_doubt"`
}

// RenderMeta is what rendering decided, once, at enqueue.
type RenderMeta struct {
	// ParseMode is "HTML" when RenderedText is the platform's HTML dialect, "" when it is plain.
	ParseMode      string     `json:"parse_mode,omitempty"`
	DisablePreview bool       `json:"disable_preview,omitempty"`
	Buttons        [][]Button `json:"buttons,omitempty"`
	// Title is the heading of a post, where the platform shows one.
	Title string `json:"title,omitempty"`
	// Post is what else the post says of itself, where its platform has such a thing; it
	// goes before the channel's settings.
	Post Post `json:"post,omitzero"`
	// Video is what else is said of a video; nil when the platform takes messages.
	Video *Video `json:"video,omitempty"`
	// Steps are the calls that make up this delivery, in order. At least one.
	Steps    []Step         `json:"steps"`
	Progress SeriesProgress `json:"series_progress"`
}

// Post is what a post says of itself on some platforms. Nil and "" leave it to the channel's settings.
type Post struct {
	MadeWithAI      *bool `json:"made_with_ai,omitempty"`
	PaidPartnership *bool `json:"paid_partnership,omitempty"`
	// ReplySettings says who may answer: "everyone", "following", "mentionedUsers", "subscribers" or "verified".
	ReplySettings string `json:"reply_settings,omitempty"`
}

// Video is what a platform of videos is told of one, besides its title and text.
type Video struct {
	// Privacy is "public", "unlisted" or "private"; private with PublishAt.
	Privacy string `json:"privacy"`
	// PublishAt is when the platform makes it public, RFC 3339; "" means that it does not.
	PublishAt string   `json:"publish_at,omitempty"`
	Tags      []string `json:"tags,omitempty"`
	// CategoryID is the platform's; "" leaves the choice to it.
	CategoryID string `json:"category_id,omitempty"`
	// Language is of the title and the description, a BCP 47 tag; "" says nothing.
	Language string `json:"language,omitempty"`
	// License is "youtube" or "creativeCommon"; "" leaves the choice to the platform.
	License        string `json:"license,omitempty"`
	MadeForKids    bool   `json:"made_for_kids,omitempty"`
	SyntheticMedia bool   `json:"synthetic_media,omitempty"`
	// Embeddable and NotifySubscribers are nil where the platform's default holds.
	Embeddable        *bool `json:"embeddable,omitempty"`
	NotifySubscribers *bool `json:"notify_subscribers,omitempty"`
	// PlaylistID is where the video is added once it is there; "" for nowhere.
	PlaylistID string `json:"playlist_id,omitempty"`
	// Captions are the subtitles by the name of their step.
	Captions map[string]CaptionTrack `json:"captions,omitempty"`
}

// CaptionTrack says what subtitles are.
type CaptionTrack struct {
	// Language is a BCP 47 tag ("en", "pt-BR").
	Language string `json:"language"`
	// Name is shown beside the language; "" is allowed.
	Name string `json:"name,omitempty"`
}

// Button opens a URL; rows of them stand under a message.
type Button struct {
	Text string `json:"text"`
	URL  string `json:"url"`
}

// Step is one call that the platform acknowledges with one or more message ids.
type Step struct {
	// Name identifies the step within its delivery ("text", "media-1").
	Name string `json:"step"`
	// Text says that the delivery's text goes with this step: as the message when
	// Items is empty, as caption or message text otherwise.
	Text bool `json:"text,omitempty"`
	// Body is this step's part of a text that was split; "" means all of RenderedText.
	Body string `json:"body,omitempty"`
	// Aside says that the step makes no message: its ids are none of the delivery's,
	// and it goes on under the rate slot of the step before.
	Aside bool `json:"aside,omitempty"`
	// ReplyTo names the step whose message this one answers; "" means none.
	ReplyTo string `json:"reply_to,omitempty"`
	// Items are indexes into Payload.Media, in sending order.
	Items []int `json:"items,omitempty"`
	// Captions are the items' own, rendered in the same dialect; nil = none. Same length as Items, or absent.
	Captions []*string `json:"captions,omitempty"`
}

// SeriesProgress is what the platform has acknowledged of a delivery so far.
type SeriesProgress struct {
	// Steps holds the ids of each acknowledged step by its name.
	Steps              map[string][]string `json:"steps,omitempty"`
	SentItems          []int               `json:"sent_items,omitempty"`
	ProviderMessageIDs []string            `json:"provider_message_ids,omitempty"`
}

// Said is the text that goes with a step; "" when none does.
func (d Delivery) Said(step Step) string {
	switch {
	case !step.Text:
		return ""
	case step.Body != "":
		return step.Body
	}
	return d.RenderedText
}

// MessageIDs are the platform's ids of the messages of a delivery, in the order of its steps;
// those of what makes no message are left out.
func (d Delivery) MessageIDs() []string {
	var ids []string
	for _, step := range d.RenderMeta.Steps {
		if !step.Aside {
			ids = append(ids, d.RenderMeta.Progress.Steps[step.Name]...)
		}
	}
	return ids
}

// Done reports whether the platform has acknowledged the step.
func (p SeriesProgress) Done(step string) bool {
	_, ok := p.Steps[step]
	return ok
}

// With is the progress after one more step; p stays as it is.
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

// Acknowledged is a step as the platform confirmed it: the p_delta of
// autopost.record_series_progress.
type Acknowledged struct {
	Step  string   `json:"step"`
	IDs   []string `json:"ids"`
	Items []int    `json:"items,omitempty"`
}

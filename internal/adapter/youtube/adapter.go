package youtube

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"autopost"
	"autopost/internal/adapter"
)

const (
	// DefaultBaseURL is the base URL of the API and of its uploads.
	DefaultBaseURL = "https://www.googleapis.com"

	// blockBytes divides the size of every part of an upload except the last.
	blockBytes = 256 << 10
	// defaultPart takes less than the time of one call at 150 KB/s.
	defaultPart = 8 << 20
	// defaultSettle is the observed delay of the list of uploads.
	defaultSettle = 30 * time.Second
	// defaultWatch bounds the polls of a new video's state. Processing may take hours, and the post is
	// published before it ends.
	defaultWatch = 10 * time.Second
)

// Config configures an adapter.
type Config struct {
	// BaseURL is the address above /youtube/v3 and /upload/youtube/v3; [DefaultBaseURL] when empty.
	BaseURL string
	// Client makes the calls. Required.
	Client adapter.Doer
	// PartBytes is the size of one part of a video, a multiple of 256 KiB; 8 MiB when 0.
	PartBytes int64
	// Settle is the delay of the list of uploads; 30 s when 0.
	Settle time.Duration
	// Watch bounds the polls of a new video's state; 10 s when 0.
	Watch time.Duration
}

// Adapter uploads videos to YouTube. It is safe for concurrent use.
type Adapter struct {
	cfg  Config
	base *url.URL
	// accounts caches the account of each credential, by the digest of its lasting part.
	accounts sync.Map
}

// New returns an adapter. It makes no request.
func New(cfg Config) (*Adapter, error) {
	cfg.BaseURL = cmp.Or(cfg.BaseURL, DefaultBaseURL)
	cfg.PartBytes = cmp.Or(cfg.PartBytes, defaultPart)
	cfg.Settle = cmp.Or(cfg.Settle, defaultSettle)
	cfg.Watch = cmp.Or(cfg.Watch, defaultWatch)
	base, err := adapter.Base(cfg.BaseURL)
	if err != nil {
		return nil, fmt.Errorf("youtube base URL: %w", err)
	}
	if cfg.PartBytes < 0 || cfg.PartBytes%blockBytes != 0 {
		return nil, fmt.Errorf("youtube part size must be a multiple of 256 KiB, got %d bytes", cfg.PartBytes)
	}
	return &Adapter{cfg: cfg, base: base}, nil
}

// Platform implements autopost.Adapter.
func (*Adapter) Platform() autopost.Platform { return autopost.YouTube }

// SettleTime implements autopost.Reconciler.
func (a *Adapter) SettleTime() time.Duration { return a.cfg.Settle }

// Send implements autopost.Adapter.
func (a *Adapter) Send(ctx context.Context, call autopost.Call) autopost.Outcome {
	s, failure := a.sender(call)
	if failure != nil {
		return autopost.Failed(*failure)
	}
	outcome := adapter.Run(ctx, call, s.step)
	if !outcome.OK && !s.lacksOnlyComment(outcome) {
		return outcome
	}
	return s.conclude(ctx, outcome)
}

// sender makes the calls of one delivery.
type sender struct {
	*Adapter
	call autopost.Call
	key  key
	hide adapter.Redactor
	// sessions are the upload sessions of the delivery, the newest last.
	sessions []*session
	// uncommented: the call for the first comment failed.
	uncommented bool
	// uploaded is the video from the last answer of its upload; nil if an earlier attempt uploaded it.
	uploaded *video
}

// channelID matches the id of a channel.
var channelID = regexp.MustCompile(`^UC[A-Za-z0-9_-]{4,22}$`)

// sender returns a sender for a delivery. It checks the target and reads the recorded sessions.
func (a *Adapter) sender(call autopost.Call) (*sender, *autopost.Error) {
	s, failure := a.authorised(call)
	if failure != nil {
		return nil, failure
	}
	if !channelID.MatchString(call.Delivery.TargetID) {
		return nil, adapter.Refusal(autopost.Permanent, autopost.ScopeChannel, "yt_channel_invalid", "the target must be a channel id, which begins with UC")
	}
	s.recall()
	return s, nil
}

// authorised returns a sender that has a credential and no target.
func (a *Adapter) authorised(call autopost.Call) (*sender, *autopost.Error) {
	if call.Secret.IsZero() {
		return nil, adapter.Refusal(autopost.Permanent, autopost.ScopeChannel, autopost.CodeCredentialMissing, "the credential is empty")
	}
	key, err := readKey(call.Secret)
	if err != nil {
		return nil, adapter.Refusal(autopost.Permanent, autopost.ScopeChannel, codeUnauthorized, err.Error())
	}
	return &sender{Adapter: a, call: call, key: key, hide: adapter.Hide(key.secrets(call.Secret)...)}, nil
}

// step makes one of the delivery's steps.
func (s *sender) step(ctx context.Context, step autopost.Step, _ string) (adapter.Receipt, *autopost.Error) {
	switch kind, _, _ := strings.Cut(step.Name, "-"); kind {
	case "session":
		return s.begin(ctx)
	case "video":
		return s.upload(ctx, step)
	case "thumbnail", "captions", "playlist":
		return s.extra(ctx, step)
	case "comment":
		receipt, failure := s.comment(ctx, step)
		s.uncommented = failure != nil
		return receipt, failure
	}
	return adapter.Receipt{}, adapter.Refusal(autopost.Permanent, autopost.ScopeDelivery, autopost.CodeValidationFailed,
		fmt.Sprintf("unknown step %q", step.Name))
}

// medium is the only medium of a step.
func (s *sender) medium(step autopost.Step) (autopost.Media, *autopost.Error) {
	if len(step.Items) != 1 {
		return autopost.Media{}, adapter.Refusal(autopost.Permanent, autopost.ScopeDelivery, autopost.CodeValidationFailed,
			fmt.Sprintf("step %s must have one medium, got %d", step.Name, len(step.Items)))
	}
	return adapter.Item(s.call.Delivery, step.Items[0])
}

// planned is a step of the delivery by its name; an empty step if there is none.
func (s *sender) planned(name string) autopost.Step {
	for _, step := range s.call.Delivery.RenderMeta.Steps {
		if step.Name == name {
			return step
		}
	}
	return autopost.Step{Name: name}
}

var (
	_ autopost.Adapter    = (*Adapter)(nil)
	_ autopost.Reconciler = (*Adapter)(nil)
	_ autopost.Editor     = (*Adapter)(nil)
	_ autopost.Deleter    = (*Adapter)(nil)
)

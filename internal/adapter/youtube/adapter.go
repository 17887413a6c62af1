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
	// DefaultBaseURL serves the API and its uploads.
	DefaultBaseURL = "https://www.googleapis.com"

	// blockBytes is what all parts of an upload but the last are a multiple of.
	blockBytes = 256 << 10
	// defaultPart fits the time of one call on a line of 150 KB/s.
	defaultPart = 8 << 20
	// defaultSettle is how long the list of uploads may lag.
	defaultSettle = 30 * time.Second
	// defaultWatch is how long a video's processing is watched: it may take hours, and
	// the post is published without it.
	defaultWatch = 10 * time.Second
)

// Config configures an adapter.
type Config struct {
	// BaseURL is where /youtube/v3 and /upload/youtube/v3 begin; [DefaultBaseURL] when empty.
	BaseURL string
	// Client makes the calls. Required.
	Client adapter.Doer
	// PartBytes is how much of a video goes into one request, a multiple of 256 KiB; 8 MiB when 0.
	PartBytes int64
	// Settle is how long the list of uploads may lag; 30 s when 0.
	Settle time.Duration
	// Watch is how long the processing of a new video is watched; 10 s when 0.
	Watch time.Duration
}

// Adapter uploads videos to YouTube. It is safe for concurrent use.
type Adapter struct {
	cfg  Config
	base *url.URL
	// accounts are those that were asked for, by the digest of what lasts of the credential.
	accounts sync.Map
}

// New makes an adapter, without effect on the outside.
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
		return nil, fmt.Errorf("youtube part of %d bytes is no multiple of 256 KiB", cfg.PartBytes)
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
	if !outcome.OK {
		return outcome
	}
	return s.conclude(ctx, outcome)
}

// sender sends one delivery.
type sender struct {
	*Adapter
	call autopost.Call
	key  key
	hide adapter.Redactor
	// sessions are those of this delivery, the newest last.
	sessions []*session
	// uploaded is the video as the end of its upload told of it; nil when that was in an earlier attempt.
	uploaded *video
}

var channelForm = regexp.MustCompile(`^UC[A-Za-z0-9_-]{4,22}$`)

func (a *Adapter) sender(call autopost.Call) (*sender, *autopost.Error) {
	s, failure := a.speaker(call)
	if failure != nil {
		return nil, failure
	}
	if !channelForm.MatchString(call.Delivery.TargetID) {
		return nil, adapter.Refusal(autopost.Permanent, autopost.ScopeChannel, "yt_channel_invalid", "the target is no channel id: it begins with UC")
	}
	s.recall()
	return s, nil
}

// speaker can make calls with the credential, whatever for.
func (a *Adapter) speaker(call autopost.Call) (*sender, *autopost.Error) {
	if call.Secret.IsZero() {
		return nil, adapter.Refusal(autopost.Permanent, autopost.ScopeChannel, autopost.CodeCredentialMissing, "there is no credential")
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
	case "thumbnail", "captions":
		return s.extra(ctx, step)
	}
	return adapter.Receipt{}, adapter.Refusal(autopost.Permanent, autopost.ScopeDelivery, autopost.CodeValidationFailed,
		fmt.Sprintf("YouTube has no step %q", step.Name))
}

// medium is the one medium of a step.
func (s *sender) medium(step autopost.Step) (autopost.Media, *autopost.Error) {
	if len(step.Items) != 1 {
		return autopost.Media{}, adapter.Refusal(autopost.Permanent, autopost.ScopeDelivery, autopost.CodeValidationFailed,
			fmt.Sprintf("step %s names %d media, not one", step.Name, len(step.Items)))
	}
	return adapter.Item(s.call.Delivery, step.Items[0])
}

// planned is a step of the delivery by its name; its zero value when there is none.
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

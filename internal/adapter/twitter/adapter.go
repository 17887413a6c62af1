package twitter

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"autopost"
	"autopost/internal/adapter"
)

// DefaultBaseURL is X's own.
const DefaultBaseURL = "https://api.x.com"

const (
	// reservedLength is what of X's 280 a post may have; a channel's max_weighted_length says otherwise.
	reservedLength = 270
	maxAltText     = 1000 // characters
	// settleTime is how long a timeline may be behind, as far as it was seen.
	settleTime = time.Minute
)

// Config configures an adapter.
type Config struct {
	// BaseURL is where /2 begins; [DefaultBaseURL] when empty.
	BaseURL string
	// Client makes the calls. Required.
	Client adapter.Doer
}

// Adapter sends deliveries to X. It is safe for concurrent use.
type Adapter struct {
	base   *url.URL
	client adapter.Doer
}

// New makes an adapter, without effect on the outside.
func New(cfg Config) (*Adapter, error) {
	base, err := adapter.Base(cmp.Or(cfg.BaseURL, DefaultBaseURL))
	if err != nil {
		return nil, fmt.Errorf("x base URL: %w", err)
	}
	return &Adapter{base: base, client: cfg.Client}, nil
}

// Platform implements autopost.Adapter.
func (*Adapter) Platform() autopost.Platform { return autopost.X }

// Send implements autopost.Adapter.
func (a *Adapter) Send(ctx context.Context, call autopost.Call) autopost.Outcome {
	s, failure := a.sender(call)
	if failure == nil {
		failure = s.check()
	}
	if failure != nil {
		return autopost.Failed(*failure)
	}
	return adapter.Run(ctx, call, s.step)
}

// sender sends one delivery, or looks for it.
type sender struct {
	adapter  *Adapter
	call     autopost.Call
	signer   signer
	hide     adapter.Redactor
	settings settings
}

// settings are those of a channel that mean something to X.
type settings struct {
	MadeWithAI            bool   `json:"made_with_ai"`
	PaidPartnership       bool   `json:"paid_partnership"`
	ForSuperFollowersOnly bool   `json:"for_super_followers_only"`
	ShareWithFollowers    bool   `json:"share_with_followers"`
	CommunityID           string `json:"community_id"`
	ReplySettings         string `json:"reply_settings"`
	// MaxWeightedLength is how long a post of this account may be, in X's weights.
	MaxWeightedLength int `json:"max_weighted_length"`
}

var replySettings = []string{"", "following", "mentionedUsers", "subscribers", "verified"}

// account is a user's id or name.
var account = regexp.MustCompile(`^(?:[0-9]{1,19}|@?[A-Za-z0-9_]{1,15})$`)

// postID is that of a post.
var postID = regexp.MustCompile(`^[0-9]{1,19}$`)

func (a *Adapter) sender(call autopost.Call) (*sender, *autopost.Error) {
	signer, secrets, failure := readCredential(call.Secret)
	if failure != nil {
		return nil, failure
	}
	s := &sender{adapter: a, call: call, signer: signer, hide: adapter.Hide(secrets...)}
	if !account.MatchString(call.Delivery.TargetID) {
		return nil, adapter.Refusal(autopost.Permanent, autopost.ScopeChannel, "x_account_invalid", "the target is neither the id nor the name of an account")
	}
	if raw := call.Delivery.Settings; len(raw) > 0 {
		if err := json.Unmarshal(raw, &s.settings); err != nil {
			return nil, s.misconfigured(err.Error())
		}
	}
	switch {
	case !slices.Contains(replySettings, s.settings.ReplySettings):
		return nil, s.misconfigured("reply_settings is none of " + strings.Join(replySettings[1:], ", "))
	case s.settings.MaxWeightedLength < 0:
		return nil, s.misconfigured("max_weighted_length is negative: write how long a post may be, or leave it out")
	case s.settings.MaxWeightedLength == 0:
		s.settings.MaxWeightedLength = reservedLength
	}
	return s, nil
}

func (s *sender) misconfigured(why string) *autopost.Error {
	return adapter.Refusal(autopost.Permanent, autopost.ScopeChannel, autopost.CodeValidationFailed, s.hide.Text("channel settings: "+why))
}

func invalid(format string, args ...any) *autopost.Error {
	return adapter.Refusal(autopost.Permanent, autopost.ScopeDelivery, autopost.CodeValidationFailed, fmt.Sprintf(format, args...))
}

// check finds what X would refuse before anything is sent: a thread is not to break off in the middle.
func (s *sender) check() *autopost.Error {
	for _, step := range s.call.Delivery.RenderMeta.Steps {
		if length := weight(s.text(step)); length > s.settings.MaxWeightedLength {
			return invalid("step %s has a weighted length of %d, at most %d is taken: shorten it, or give the channel a long_text strategy",
				step.Name, length, s.settings.MaxWeightedLength)
		}
		if strings.TrimSpace(s.text(step)) == "" && len(step.Items) == 0 {
			return invalid("step %s has neither text nor media", step.Name)
		}
		for _, index := range step.Items {
			medium, failure := adapter.Item(s.call.Delivery, index)
			if failure != nil {
				return failure
			}
			if len(categories[medium.Type]) == 0 {
				return invalid("media[%d] is of no kind that X has", index)
			}
			if n := len([]rune(medium.Alt)); n > maxAltText {
				return invalid("media[%d].alt has %d characters, X takes at most %d: shorten it", index, n, maxAltText)
			}
		}
	}
	return nil
}

// text is what a step says: its part of the text, else its media's captions, for X shows none.
func (s *sender) text(step autopost.Step) string {
	if step.Text {
		return s.call.Delivery.Said(step)
	}
	var captions []string
	for _, caption := range step.Captions {
		if caption != nil {
			captions = append(captions, *caption)
		}
	}
	return strings.Join(captions, "\n\n")
}

// request makes a call of the API, signed. body is JSON, or nil.
func (s *sender) request(ctx context.Context, method, path string, query url.Values, body io.Reader) (*http.Request, *autopost.Error) {
	target := s.adapter.base.JoinPath(path)
	target.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, method, target.String(), body)
	if err != nil {
		return nil, adapter.Refusal(autopost.Permanent, autopost.ScopePlatform, autopost.CodeValidationFailed, "the base URL makes no address")
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	s.signer.sign(req)
	return req, nil
}

// get reads the data of a call that changes nothing.
func (s *sender) get(ctx context.Context, path string, query url.Values, into any) *autopost.Error {
	req, failure := s.request(ctx, http.MethodGet, path, query, nil)
	if failure != nil {
		return failure
	}
	return s.answered(req, into)
}

// answered makes a call that posts nothing, so that every failure of it is definite.
func (s *sender) answered(req *http.Request, into any) *autopost.Error {
	answer, failure := adapter.Exchange(s.adapter.client, req, s.hide)
	switch {
	case failure != nil:
		return definite(failure)
	case answer.Status >= 300:
		return refused(answer, s.hide)
	case into != nil && json.Unmarshal(answer.Body, into) != nil:
		return unreadable(answer, s.hide)
	}
	return nil
}

var (
	_ autopost.Adapter    = (*Adapter)(nil)
	_ autopost.Reconciler = (*Adapter)(nil)
	_ autopost.Deleter    = (*Adapter)(nil)
)

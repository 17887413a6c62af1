package webhook_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/adapter"
	"autopost/internal/adapter/adaptertest"
	"autopost/internal/adapter/webhook"
	"autopost/internal/sim"
	simwebhook "autopost/internal/sim/webhook"
)

const (
	secret = "whsec_Y2FuYXJ5LXNpZ25pbmcta2V5LXRoYXQtc3RheXMtYXQtaG9tZQ=="
	// host is a placeholder for the simulator's address.
	host = "https://receiver.test"
)

func TestConformance(t *testing.T) { adaptertest.Run(t, harness()) }

func harness() adaptertest.Harness {
	methods := map[autopost.MediaKind]string{}
	for _, kind := range []autopost.MediaKind{
		autopost.MediaImage, autopost.MediaVideo, autopost.MediaAnimation, autopost.MediaAudio, autopost.MediaFile,
	} {
		methods[kind] = http.MethodPost
	}
	return adaptertest.Harness{
		Secret: secret, Target: host + "/news", Schema: schema, Read: read,
		Simulator: func(t *testing.T) (*sim.Core, http.Handler) {
			core := sim.NewCore(0)
			receiver := simwebhook.New(core, simwebhook.Options{})
			require.NoError(t, receiver.AddEndpoint("news", secret))
			return core, receiver
		},
		New: func(baseURL string, client adapter.Doer) (autopost.Adapter, error) {
			return at{webhook.New(webhook.Config{Client: client}), baseURL}, nil
		},
		TextMethod: http.MethodPost, AlbumMethod: http.MethodPost, MediaMethods: methods,
		NoUploads: true, OwnHost: true, AnyBody: true, BadSettings: `{"inline_media_bytes":"all"}`,
		Definite5xx: row(503, 7, autopost.Transient, autopost.ScopeChannel, "webhook_5xx"),
		Rows: []adaptertest.Row{
			row(400, 0, autopost.Permanent, autopost.ScopeDelivery, "validation_failed"),
			row(401, 0, autopost.Permanent, autopost.ScopeChannel, "webhook_denied"),
			row(403, 0, autopost.Permanent, autopost.ScopeChannel, "webhook_denied"),
			row(404, 0, autopost.Permanent, autopost.ScopeChannel, "webhook_404"),
			row(405, 0, autopost.Permanent, autopost.ScopeChannel, "webhook_405"),
			row(408, 0, autopost.Transient, autopost.ScopeChannel, "webhook_408"),
			row(409, 0, autopost.Permanent, autopost.ScopeDelivery, "webhook_409"),
			row(410, 0, autopost.Permanent, autopost.ScopeChannel, "webhook_gone"),
			row(413, 0, autopost.Permanent, autopost.ScopeDelivery, "media_too_large"),
			row(422, 0, autopost.Permanent, autopost.ScopeDelivery, "webhook_422"),
			row(429, 0, autopost.Transient, autopost.ScopeChannel, "webhook_429"),
			row(429, 30, autopost.Transient, autopost.ScopeChannel, "webhook_429"),
			row(503, 7, autopost.Transient, autopost.ScopeChannel, "webhook_5xx"),
		},
	}
}

func row(status, retryAfter int, category autopost.Category, scope autopost.Scope, code string) adaptertest.Row {
	return adaptertest.Row{
		Status: status, RetryAfter: retryAfter, Description: "no",
		Want: adaptertest.Class{Category: category, Scope: scope, Code: code, RetryAfterMS: int64(retryAfter) * 1000},
	}
}

// at replaces host by another address: for this platform the target is the address.
type at struct {
	*webhook.Adapter
	baseURL string
}

func (a at) Send(ctx context.Context, call autopost.Call) autopost.Outcome {
	call.Delivery.TargetID = strings.Replace(call.Delivery.TargetID, host, a.baseURL, 1)
	return a.Adapter.Send(ctx, call)
}

// post is an event as docs/webhook.md describes it, independent of the adapter's type.
type post struct {
	ID, Type, Created, Channel, Text, HTML, Link string
	Part, Parts                                  int
	Media                                        []struct {
		Type, SHA256, Caption, Alt, Filename string
		ContentType                          string `json:"content_type"`
		Size                                 int64
		Content                              []byte
	}
	Buttons [][]sim.Button
	ReplyTo string `json:"reply_to"`
}

func schema(r *http.Request, body []byte) error {
	decoder := json.NewDecoder(strings.NewReader(string(body)))
	decoder.DisallowUnknownFields()
	var p post
	if err := decoder.Decode(&p); err != nil {
		return err
	}
	if p.Type != "post" || p.ID == "" || p.ID != r.Header.Get("webhook-id") {
		return fmt.Errorf("a %q of id %q, sent as %q", p.Type, p.ID, r.Header.Get("webhook-id"))
	}
	return nil
}

// read fills a log entry from an event, as a receiver would show the post.
func read(e *sim.Entry) {
	var p post
	if json.Unmarshal([]byte(e.Text), &p) != nil {
		return
	}
	e.Text, e.Buttons, e.ReplyTo = p.Text, p.Buttons, p.ReplyTo
	if strings.Contains(p.HTML, "</") {
		e.Marks = []sim.Mark{{Type: "html"}}
	}
	for _, m := range p.Media {
		e.Media = append(e.Media, sim.Media{Kind: m.Type, Digest: m.SHA256, Size: m.Size, Caption: m.Caption})
	}
}

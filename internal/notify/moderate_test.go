package notify_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/notify"
)

// messenger records the calls of one platform. It fails the change of one message.
type messenger struct {
	fails   string
	changed []string
	answers []string
}

func (*messenger) Platform() autopost.Platform { return autopost.Telegram }

func (m *messenger) Send(_ context.Context, call autopost.Call) autopost.Outcome {
	m.changed = append(m.changed, "sent "+call.Delivery.RenderMeta.Buttons[0][1].Data)
	return autopost.Outcome{OK: true, ProviderMessageID: "7"}
}

func (m *messenger) Edit(_ context.Context, call autopost.Call) *autopost.Error {
	id := call.Delivery.RenderMeta.Progress.Steps["text"][0]
	m.changed = append(m.changed, id)
	if id == m.fails {
		return &autopost.Error{Category: autopost.Permanent, Code: "gone", Known: true}
	}
	return nil
}

func (m *messenger) AnswerPress(_ context.Context, _ autopost.Secret, callbackID, text string) *autopost.Error {
	m.answers = append(m.answers, callbackID+" "+text)
	return nil
}

func TestModeratorsAreAskedAndAnswered(t *testing.T) {
	t.Parallel()
	m := &messenger{fails: "1"}
	n := notify.New(notify.Config{Credentials: secrets, Adapters: map[autopost.Platform]autopost.Adapter{autopost.Telegram: m}})
	call := func(c autopost.ModerationCall) autopost.Outcome {
		c.Platform, c.AuthRef, c.TargetID = autopost.Telegram, "bot", "-1"
		return n.Moderate(t.Context(), "w", c)
	}
	asked := call(autopost.ModerationCall{Kind: autopost.ModerationAsk, Text: "?", Buttons: []autopost.PressButton{{Text: "Approve", Data: "m:a"}, {Text: "Reject", Data: "m:b"}}})
	require.Equal(t, "7", asked.ProviderMessageID)
	closed := call(autopost.ModerationCall{Kind: autopost.ModerationClose, Text: "Approved", ProviderIDs: []string{"1", "2"}})
	require.Equal(t, "gone", closed.Error.Code, "the first copy was removed")
	require.Equal(t, []string{"sent m:b", "1", "2"}, m.changed, "and the second one is changed")
	require.True(t, call(autopost.ModerationCall{Kind: autopost.ModerationAnswer, CallbackID: "cb", Text: "Approved."}).OK)
	require.Equal(t, []string{"cb Approved."}, m.answers)

	unknown := n.Moderate(t.Context(), "w", autopost.ModerationCall{Kind: autopost.ModerationAsk, Platform: autopost.MAX, AuthRef: "bot"})
	require.Equal(t, "target_kind_unknown", unknown.Error.Code)
	missing := n.Moderate(t.Context(), "w", autopost.ModerationCall{Kind: autopost.ModerationAsk, Platform: autopost.Telegram, AuthRef: "other"})
	require.Equal(t, autopost.CodeCredentialUnavailable, missing.Error.Code)
}

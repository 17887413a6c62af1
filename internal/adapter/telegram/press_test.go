package telegram_test

import (
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/adapter/adaptertest/published"
	"autopost/internal/adapter/telegram"
	"autopost/internal/outbound"
	"autopost/internal/sim"
	simulator "autopost/internal/sim/telegram"
)

// A message has buttons that report a press, a press is answered, and an edit removes the buttons.
func TestPressesAreAnswered(t *testing.T) {
	core := sim.NewCore(0)
	server := simulator.New(core, simulator.Options{Limits: &simulator.Limits{}})
	defer server.Close()
	require.NoError(t, server.AddBot(token))
	server.AddChat(simulator.Chat{ID: -1001, Type: "supergroup"})
	host := httptest.NewServer(published.Inspect(t, server, published.Telegram(t)))
	defer host.Close()
	client, err := outbound.Operator(outbound.OperatorConfig{})
	require.NoError(t, err)
	defer client.CloseIdleConnections()
	a, err := telegram.New(telegram.Config{BaseURL: host.URL, Client: client})
	require.NoError(t, err)

	call := autopost.Call{Secret: autopost.NewSecret(token), Delivery: autopost.Delivery{TargetID: "-1001", RenderedText: "Approve?", RenderMeta: autopost.RenderMeta{
		Steps: []autopost.Step{{Name: "text", Text: true}}, Buttons: [][]autopost.Button{{{Text: "Yes", Data: "m:1"}, {Text: "Open", URL: "https://example.org/"}}},
	}}}
	sent := a.Send(t.Context(), call)
	require.Nil(t, sent.Error)
	require.Equal(t, [][]sim.Button{{{Text: "Yes", Data: "m:1"}, {Text: "Open", URL: "https://example.org/"}}}, server.Messages(-1001)[0].Buttons)
	id, err := strconv.ParseInt(sent.ProviderMessageID, 10, 64)
	require.NoError(t, err)
	press, err := server.Press(-1001, id, sim.Person{ID: 5, Name: "Olga"}, "Yes")
	require.NoError(t, err)
	_, err = server.Press(-1001, id, sim.Person{ID: 5, Name: "Olga"}, "Open")
	require.ErrorContains(t, err, "no button", "a link reports nothing")
	require.Nil(t, a.AnswerPress(t.Context(), call.Secret, press, "Approved."))
	failure := a.AnswerPress(t.Context(), call.Secret, "4711", "Approved.")
	require.Equal(t, autopost.Permanent, failure.Category)
	require.Contains(t, failure.Message, "query is too old")

	call.Delivery.RenderedText, call.Delivery.RenderMeta.Buttons = "Approved by Olga", [][]autopost.Button{}
	call.Delivery.RenderMeta.Progress = autopost.SeriesProgress{Steps: map[string][]string{"text": {sent.ProviderMessageID}}}
	require.Nil(t, a.Edit(t.Context(), call))
	require.Empty(t, server.Messages(-1001)[0].Buttons)
	require.Equal(t, "Approved by Olga", server.Messages(-1001)[0].Text)
}

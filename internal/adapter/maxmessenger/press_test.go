package maxmessenger_test

import (
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/adapter/adaptertest/published"
	"autopost/internal/adapter/maxmessenger"
	"autopost/internal/outbound"
	"autopost/internal/sim"
	simulator "autopost/internal/sim/maxmessenger"
)

// A message has buttons that report a press, a press is answered, and an edit removes the buttons.
func TestPressesAreAnswered(t *testing.T) {
	server := simulator.New(sim.NewCore(0), simulator.Options{Limits: &simulator.Limits{}})
	defer server.Close()
	require.NoError(t, server.AddBot(token))
	server.AddChat(simulator.Chat{ID: -7, Type: "chat"})
	host := httptest.NewServer(published.Inspect(t, server, published.MAX(t)))
	defer host.Close()
	client, err := outbound.Operator(outbound.OperatorConfig{})
	require.NoError(t, err)
	defer client.CloseIdleConnections()
	a, err := maxmessenger.New(maxmessenger.Config{BaseURL: host.URL, Client: client})
	require.NoError(t, err)

	call := autopost.Call{Secret: autopost.NewSecret(token), Delivery: autopost.Delivery{TargetID: "-7", RenderedText: "Approve?", RenderMeta: autopost.RenderMeta{
		Steps: []autopost.Step{{Name: "text", Text: true}}, Buttons: [][]autopost.Button{{{Text: "Yes", Data: "m:1"}, {Text: "Open", URL: "https://example.org/"}}},
	}}}
	sent := a.Send(t.Context(), call)
	require.Nil(t, sent.Error)
	require.Equal(t, [][]sim.Button{{{Text: "Yes", Data: "m:1"}, {Text: "Open", URL: "https://example.org/"}}}, server.Messages(-7)[0].Buttons)
	press, err := server.Press(sent.ProviderMessageID, sim.Person{ID: 5, Name: "Olga"}, "Yes")
	require.NoError(t, err)
	_, err = server.Press(sent.ProviderMessageID, sim.Person{ID: 5, Name: "Olga"}, "Open")
	require.ErrorContains(t, err, "no button", "a link reports nothing")
	require.Nil(t, a.AnswerPress(t.Context(), call.Secret, press, "Approved."))
	failure := a.AnswerPress(t.Context(), call.Secret, "unknown", "Approved.")
	require.Equal(t, autopost.Permanent, failure.Category)
	require.Equal(t, autopost.Permanent, a.AnswerPress(t.Context(), autopost.NewSecret("no\nheader"), press, "Approved.").Category)

	call.Delivery.RenderedText, call.Delivery.RenderMeta.Buttons = "Approved by Olga", [][]autopost.Button{}
	call.Delivery.RenderMeta.Progress = autopost.SeriesProgress{Steps: map[string][]string{"text": {sent.ProviderMessageID}}}
	require.Nil(t, a.Edit(t.Context(), call))
	require.Empty(t, server.Messages(-7)[0].Buttons)
	require.Equal(t, "Approved by Olga", server.Messages(-7)[0].Text)
}

package maxmessenger_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost"
	"autopost/internal/adapter/adaptertest"
	"autopost/internal/adapter/adaptertest/published"
	"autopost/internal/adapter/maxmessenger"
	"autopost/internal/outbound"
	simmax "autopost/internal/sim/maxmessenger"
)

// edited sends a delivery, changes and edits it. It returns the message of the chat.
func edited(t *testing.T, d autopost.Delivery, change func(*autopost.Delivery)) simmax.Message {
	t.Helper()
	_, server := platform(t)
	listener := httptest.NewServer(published.Inspect(t, server, published.MAX(t)))
	t.Cleanup(listener.Close)
	client, err := outbound.Operator(outbound.OperatorConfig{})
	require.NoError(t, err)
	t.Cleanup(client.CloseIdleConnections)
	a, err := maxmessenger.New(maxmessenger.Config{BaseURL: listener.URL, Client: client})
	require.NoError(t, err)
	media := adaptertest.NewMediaAccess()
	for i := range d.Payload.Media {
		d.Payload.Media[i].BlobRef = media.Add(d.Payload.Media[i].Type)
	}
	d.TargetID = target
	call := autopost.Call{Delivery: d, Secret: autopost.NewSecret(token), Media: media}
	o := a.Send(t.Context(), call)
	require.True(t, o.OK, "%v", o.Error)
	step := d.RenderMeta.Steps[0].Name
	call.Delivery.RenderMeta.Progress = autopost.SeriesProgress{Steps: map[string][]string{step: {o.ProviderMessageID}}}
	change(&call.Delivery)
	require.Nil(t, a.Edit(t.Context(), call))
	return server.Messages(chatID)[0]
}

func TestEditKeepsMediaAndTheirButtons(t *testing.T) {
	t.Parallel()
	d := autopost.Delivery{RenderedText: "old", Payload: autopost.Payload{Media: []autopost.Media{{Type: autopost.MediaImage}}}, RenderMeta: autopost.RenderMeta{
		Steps: []autopost.Step{{Name: "media-1", Text: true, Items: []int{0}}}, Buttons: [][]autopost.Button{{{Text: "Open", URL: "https://example.org/"}}},
	}}
	m := edited(t, d, func(d *autopost.Delivery) { d.RenderedText = "new" })
	require.Equal(t, "new", m.Text)
	require.Len(t, m.Media, 1)
	require.Len(t, m.Buttons, 1)
}

func TestEditOfATextReplacesItsButtons(t *testing.T) {
	t.Parallel()
	d := autopost.Delivery{RenderedText: "old", RenderMeta: autopost.RenderMeta{
		Steps: []autopost.Step{{Name: "text", Text: true}}, Buttons: [][]autopost.Button{{{Text: "Open", URL: "https://example.org/"}}},
	}}
	for name, c := range map[string]struct {
		buttons [][]autopost.Button
		rows    int
	}{
		"other buttons":     {[][]autopost.Button{{{Text: "A", URL: "https://example.org/a"}}, {{Text: "B", URL: "https://example.org/b"}}}, 2},
		"no buttons":        {[][]autopost.Button{}, 0},
		"buttons not given": {nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			m := edited(t, d, func(d *autopost.Delivery) { d.RenderedText, d.RenderMeta.Buttons = "new", c.buttons })
			require.Len(t, m.Buttons, c.rows)
		})
	}
}

func TestUnpinKeepsThePinOfAnotherPost(t *testing.T) {
	t.Parallel()
	_, server := platform(t)
	requests := map[string]int{}
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests[r.Method]++
		server.ServeHTTP(w, r)
	}))
	t.Cleanup(listener.Close)
	client, err := outbound.Operator(outbound.OperatorConfig{})
	require.NoError(t, err)
	t.Cleanup(client.CloseIdleConnections)
	a, err := maxmessenger.New(maxmessenger.Config{BaseURL: listener.URL, Client: client})
	require.NoError(t, err)
	post := func() autopost.Call {
		call := autopost.Call{Secret: autopost.NewSecret(token), Delivery: autopost.Delivery{
			TargetID: target, RenderedText: "x", RenderMeta: autopost.RenderMeta{Steps: []autopost.Step{{Name: "text", Text: true}}},
		}}
		o := a.Send(t.Context(), call)
		require.True(t, o.OK, "%v", o.Error)
		call.Delivery.RenderMeta.Progress = autopost.SeriesProgress{Steps: map[string][]string{"text": {o.ProviderMessageID}}}
		return call
	}
	first, second := post(), post()
	require.Nil(t, a.Pin(t.Context(), first))
	require.Nil(t, a.Pin(t.Context(), second))
	require.Nil(t, a.Unpin(t.Context(), first))
	require.Equal(t, second.Delivery.MessageIDs()[0], server.Pinned(chatID))
	require.Zero(t, requests[http.MethodDelete])
}

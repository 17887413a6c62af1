package adaptertest

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What the published descriptions do not know is refused, at every depth.
func TestSchemasRefuseWhatIsUnknown(t *testing.T) {
	var described map[string]any
	if !SharedData(t, "telegram-bot-api.json", &described) {
		return
	}
	telegram, maxBot := TelegramSchema(t), MAXSchema(t)
	for _, c := range []struct {
		schema Schema
		target string
		good   string
		bad    []string
	}{
		{
			telegram, "/bot1:a/sendMessage",
			`{"chat_id":-1,"text":"a","link_preview_options":{"is_disabled":true},"reply_markup":{"inline_keyboard":[[{"text":"a","url":"https://a.example"}]]}}`,
			[]string{
				`{"chat_id":-1}`, `{"chat_id":1.5,"text":"a"}`, `{"chat_id":-1,"text":1}`, `{"chat_id":-1,"text":"a","disable_web_page_preview":true}`,
				`{"chat_id":-1,"text":"a","link_preview_options":{"disabled":true}}`,
				`{"chat_id":-1,"text":"a","reply_markup":{"inline_keyboard":[[{"text":"a","href":"https://a.example"}]]}}`,
			},
		},
		{
			maxBot, "/messages?chat_id=-1",
			`{"text":"a","link":null,"attachments":[{"type":"image","payload":{"token":"t"}},{"type":"inline_keyboard","payload":{"buttons":[[{"type":"link","text":"a","url":"https://a.example"}]]}}]}`,
			[]string{
				`{"text":"a"}`, `{"text":1,"link":null,"attachments":null}`, `{"text":"a","link":null,"attachments":null,"silent":true}`,
				`{"text":"a","link":null,"attachments":null,"format":"markup"}`, `{"text":"a","link":null,"attachments":[{"type":"image","payload":{"tokens":"t"}}]}`,
				`{"text":"a","link":null,"attachments":[{"type":"inline_keyboard","payload":{"buttons":[[{"type":"link","text":"a","href":"x"}]]}}]}`,
				`{"text":"` + strings.Repeat("a", 4001) + `","link":null,"attachments":null}`, `{"text":"a","link":null,"attachments":null,"notify":1}`,
			},
		},
	} {
		check := func(target, body string) error {
			r := httptest.NewRequest(http.MethodPost, target, nil)
			r.Header.Set("Content-Type", "application/json")
			return c.schema(r, []byte(body))
		}
		require.NoError(t, check(c.target, c.good))
		for _, body := range c.bad {
			require.Error(t, check(c.target, body), body)
		}
		require.Error(t, check("/bot1:a/nothing", c.good))
	}
	require.Error(t, maxBot(httptest.NewRequest(http.MethodPost, "/messages?chat_id=-1&access_token=t", nil), []byte(`{"text":"a","link":null,"attachments":null}`)))
	require.Error(t, telegram(httptest.NewRequest(http.MethodGet, "/bot1:a/getChat?chat=1", nil), nil))
}

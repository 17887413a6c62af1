package push_test

import (
	"encoding/json"
	"strconv"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"
)

// Every body is refused, or PostgreSQL can store it.
func FuzzBody(f *testing.F) {
	for _, seed := range []string{`{}`, `[{}]`, `{"a":["\ud83d\ude00",1e5]}`, `[{"a":"\u0000"},7]`, `"`, `{"a":{"b":[[]]}}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		s := newStore()
		s.receiveErr = errGone
		w := post(s, body)
		if len(s.received) == 1 {
			var items []map[string]any
			require.NoError(t, json.Unmarshal([]byte(s.received[0]), &items))
			return
		}
		require.Contains(t, []int{400, 413, 422}, w.Code)
	})
}

// No headers are accepted that the library of the specification refuses, and all refusals are those for signatures.
func FuzzSignature(f *testing.F) {
	const body = `{"text":"a"}`
	library, err := standardwebhooks.NewWebhook(signingKey)
	require.NoError(f, err)
	now := time.Now().Truncate(time.Second)
	good, err := library.Sign("msg-1", now, []byte(body))
	require.NoError(f, err)
	stamp := strconv.FormatInt(now.Unix(), 10)
	f.Add("msg-1", stamp, good)
	f.Add("msg-1", stamp, "v1a,AAAA "+good)
	f.Add("msg-2", stamp, good)
	f.Add("", "-1", "v1,")
	f.Add("a.b", "99999999999999999999", "v1,====")
	f.Fuzz(func(t *testing.T, id, timestamp, offered string) {
		s := newSignedStore()
		s.statuses = []string{"enqueued"}
		w := sign(s, body, map[string]string{"webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": offered})
		if len(s.received) == 1 {
			require.Equal(t, 202, w.Code)
			require.NoError(t, library.VerifyIgnoringTimestamp([]byte(body), headers(id, timestamp, offered)))
			return
		}
		require.Equal(t, 401, w.Code)
	})
}

package configfile_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"autopost/internal/configfile"
)

const example = `settings:
  max_attempts: 7
workspaces:
  news:
    name: The newsroom
    status: paused
    credentials:
      bot:
        platform: telegram
        secret_ref: env:BOT
    groups:
      telegram/bot:
        rate_rps: 0.50
    templates:
      digest:
        body: |-
          {title}

          {link}
        defaults:
          title: "7"
    channels:
      news-ru:
        platform: telegram
        target_id: '@news_ru'
        auth_ref: bot
        enabled: false
        posting_window:
          mon: [["09:00", "12:00"], ["14:00", "24:00"]]
        tags: [ru, "no"]
    quotas:
      channel:news-ru/3600:
        max_sends: 8
  spare: {}
`

func read(t *testing.T, text string) configfile.File {
	t.Helper()
	file, err := configfile.Read("file.yaml", strings.NewReader(text))
	require.NoError(t, err)
	return file
}

// written returns a file without the values at their defaults.
func written(f configfile.File) configfile.File {
	for _, w := range f.Workspaces {
		for _, item := range w.Items {
			for name, value := range item.Fields {
				if string(value) == "null" {
					delete(item.Fields, name)
				}
			}
		}
	}
	return f
}

func TestWriteAndReadAreInverse(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, configfile.Write(&out, written(read(t, example))))
	require.Equal(t, example, out.String())
}

func TestReadSetsEveryField(t *testing.T) {
	t.Parallel()
	file := read(t, example)
	require.Equal(t, json.RawMessage("7"), file.Settings["max_attempts"])
	require.Len(t, file.Workspaces, 2)
	kinds := []string{}
	for _, item := range file.Workspaces[0].Items {
		kinds = append(kinds, item.Kind+" "+item.ID)
		require.Len(t, item.Fields, len(configfile.KindOf(item.Kind).Fields), item.ID)
	}
	require.Equal(t, []string{"workspace news", "credential bot", "group telegram/bot", "template digest", "channel news-ru", "quota channel:news-ru/3600"}, kinds,
		"items refer only to earlier items")
	channel := file.Workspaces[0].Items[4]
	require.Equal(t, "false", string(channel.Fields["enabled"]))
	require.Equal(t, "null", string(channel.Fields["title"]), "a missing field is null")
	require.JSONEq(t, `{"mon": [["09:00", "12:00"], ["14:00", "24:00"]]}`, string(channel.Fields["posting_window"]))
	require.JSONEq(t, `["ru", "no"]`, string(channel.Fields["tags"]))
	require.Equal(t, "file.yaml:23", channel.At.String())
	require.Equal(t, "file.yaml:28", channel.PlaceOf("posting_window").String())
	require.Equal(t, "file.yaml:30", channel.PlaceOf("tags").String())
	require.Equal(t, "file.yaml:23", channel.PlaceOf("title").String())
	require.Equal(t, "file.yaml:2", file.SettingPlace("max_attempts").String())
	require.Equal(t, "file.yaml:1", file.SettingPlace("other").String())
	require.Nil(t, read(t, "workspaces: {a: {channels: }}").Settings, "a file without settings")
}

func TestReadNamesTheWrongLine(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		"":                               "file.yaml must not be empty",
		"workspaces: {a: {chanels: {}}}": "file.yaml:1: unknown key \"chanels\": did you mean channels?",
		"workspaces:\n  a:\n    channels:\n      c:\n        targt_id: x": "file.yaml:5: unknown field \"targt_id\": did you mean target_id?",
		"workspaces:\n  a:\n    groups: {g: {speed: 1}}":                  "file.yaml:3: unknown field \"speed\": use rate_rps",
		"wrkspaces: {}":                     "file.yaml:1: unknown key \"wrkspaces\": did you mean workspaces?",
		"workspaces: [a]":                   "file.yaml:1: workspaces must be a mapping",
		"- a":                               "file.yaml:1: a configuration must be a mapping",
		"workspaces:\n  a: 7":               "file.yaml:2: workspace a must be a mapping",
		"settings:\n  a: 1\n  a: 2":         "file.yaml:3: \"a\" must appear only once, it is also in line 2",
		"settings:\n  a: {b: 1,\n    b: 2}": "file.yaml:3: \"b\" must appear only once, it is also in line 2",
		"settings: {a: .inf}":               "file.yaml:1: a value must be representable as JSON, got .inf",
		"settings:\n  a: &x 1\n  b: *x":     "file.yaml:3: a value must not be an alias",
		"settings:\n  <<: {a: 1}":           "file.yaml:2: a key of settings must be plain text",
		"settings: {a: [1, {b: *x}]}":       "file.yaml: ",
		"settings:\n\ta: 1":                 "file.yaml: ",
		"settings: {}\n---\nsettings: {}":   "must contain one document",
	} {
		_, err := configfile.Read("file.yaml", strings.NewReader(text))
		require.ErrorContains(t, err, says, text)
	}
}

// Texts and numbers of any form survive a write and a read.
func TestValuesSurviveWriteAndRead(t *testing.T) {
	t.Parallel()
	values := rapid.OneOf(
		rapid.Custom(func(t *rapid.T) json.RawMessage {
			text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
				"", " ", "~", "null", "yes", "on", "7", "0x7", "1e3", "09:00", "2026-01-02", "2026-01-02T03:04:05Z", "- a", "a: b", "#", "a #b", "{a}", "[a]", "*a", "&a", "!a", "|", ">",
				"a\nb", "a\n", "\na", "a\n\n b \n", " a\nb", "a\r\nb", "a\tb\n\tc", "\u0085", "\u2028\n", "\ufeffa", "'", "\"", "\\n", "%a", "@a", "`a`", "=", "<<", "---", "--- a\n...",
			})).Draw(t, "text")
			raw, err := json.Marshal(text)
			require.NoError(t, err)
			return raw
		}),
		rapid.SampledFrom([]json.RawMessage{[]byte("0"), []byte("-1"), []byte("0.50"), []byte("1e3"), []byte("1.5E-7"), []byte("12345678901234567890"), []byte("true"), []byte("false"),
			[]byte("[]"), []byte("{}"), []byte(`[null, [], {"a": [1, "x"]}]`), []byte(`{"a": {"b": null}, "": "x", "7": 7, "no": true}`)}))
	rapid.Check(t, func(t *rapid.T) {
		value := values.Draw(t, "value")
		var out bytes.Buffer
		require.NoError(t, configfile.Write(&out, configfile.File{Settings: map[string]json.RawMessage{"a": value}}))
		again, err := configfile.Read("f", bytes.NewReader(out.Bytes()))
		require.NoError(t, err, out.String())
		require.JSONEq(t, string(value), string(again.Settings["a"]), out.String())
		var twice bytes.Buffer
		require.NoError(t, configfile.Write(&twice, again))
		require.Equal(t, out.String(), twice.String())
	})
}

func TestWhereFindsKeysInsideAField(t *testing.T) {
	t.Parallel()
	file, err := configfile.Read("f", strings.NewReader("workspaces:\n  w:\n    sources:\n      feed:\n        kind: rss\n        config_json:\n          url: x\n          tags: [a]\n"))
	require.NoError(t, err)
	feed := file.Workspaces[0].Items[1]
	for field, place := range map[string]string{"config_json.tags": "f:8", "config_json.url": "f:7", "config_json.media": "f:6", "kind": "f:5", "enabled": "f:4"} {
		require.Equal(t, place, feed.PlaceOf(field).String(), field)
	}
}

func TestReadTable(t *testing.T) {
	t.Parallel()
	items, err := configfile.ReadTable("c.csv", strings.NewReader("\ufeffchannel_id,platform,rate_rps,tags,enabled,route_filter,title\n"+
		`a,telegram,0.5,"ru, news",true,"{""exclude"": [""x""]}",`+"\n"+`b,max,,"[""a,b""]",,,"two`+"\n"+`lines"`+"\n"))
	require.NoError(t, err)
	require.Len(t, items, 2)
	fields := func(i int) string {
		raw, err := json.Marshal(items[i].Fields)
		require.NoError(t, err)
		return string(raw)
	}
	require.JSONEq(t, `{"platform": "telegram", "rate_rps": 0.5, "tags": ["ru", "news"], "enabled": true, "route_filter": {"exclude": ["x"]}}`, fields(0), "an empty cell sets no field")
	require.JSONEq(t, `{"platform": "max", "tags": ["a,b"], "title": "two\nlines"}`, fields(1))
	require.Equal(t, "c.csv:2: column 3", items[0].PlaceOf("rate_rps").String())
	require.Equal(t, "c.csv:3", items[1].PlaceOf("rate_rps").String())

	for text, says := range map[string]string{
		"":                                       "c.csv must not be empty: name the columns in the first row, of channel_id, platform",
		"channel_id,targetid\n":                  "c.csv:1: column 2: unknown column \"targetid\": did you mean target_id?",
		"platform\nx\n":                          "c.csv:1: column channel_id is missing",
		"channel_id,title,title\n":               "c.csv:1: column 3: column title must appear only once",
		"channel_id,rate_rps\na,fast\n":          "c.csv:2: column 2: rate_rps must be a number, got \"fast\"",
		"channel_id,rate_rps\na,\"\"\"1\"\"\"\n": "c.csv:2: column 2: rate_rps must be a number",
		"channel_id,enabled\na,yes\n":            "c.csv:2: column 2: enabled must be true or false, got \"yes\"",
		"channel_id,settings\na,{\n":             "c.csv:2: column 2: settings must be JSON, wrong at character 1",
		"channel_id,tags\na,[1\n":                "c.csv:2: column 2: tags must be JSON",
		"channel_id,title\n,x\n":                 "c.csv:2: channel_id is missing",
		"channel_id\na\nb\na\n":                  "c.csv:4: channel a must appear only once, it is also in line 2",
		"channel_id,title\na\n":                  "c.csv: record on line 2: wrong number of fields",
	} {
		_, err := configfile.ReadTable("c.csv", strings.NewReader(text))
		require.ErrorContains(t, err, says, text)
	}
}

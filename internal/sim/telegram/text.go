package telegram

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"autopost/internal/sim"
)

const (
	maxText     = 4096  // code points after parsing
	maxCaption  = 1024  // code points after parsing
	maxRawBytes = 32768 // bytes of a text parameter, markup included
)

// Entity is a formatted part of a text. Offset and Length count UTF-16 code units.
type Entity struct {
	Type          string `json:"type"`
	Offset        int    `json:"offset"`
	Length        int    `json:"length"`
	URL           string `json:"url,omitempty"`
	Language      string `json:"language,omitempty"`
	CustomEmojiID string `json:"custom_emoji_id,omitempty"`
}

// formatted is a text as the server stores it.
type formatted struct {
	text     string
	entities []Entity
}

// utf16Len is the length of s in UTF-16 code units.
func utf16Len(s string) int {
	n := 0
	for _, r := range s {
		n++
		if r > 0xFFFF {
			n++
		}
	}
	return n
}

// source is a text parameter with its markup.
type source struct {
	text, parseMode string
	entities        []Entity
	entitiesErr     error
}

func (a arguments) source(textName, entitiesName string) source {
	src := source{text: a.values[textName], parseMode: a.values["parse_mode"]}
	_, src.entitiesErr = a.object(entitiesName, &src.entities)
	return src
}

// parse returns a text parameter without markup, cleaned and trimmed. It does not check the length of the
// result.
func (src source) parse(note func(string)) (formatted, *refusal) {
	switch {
	case len(src.text) > maxRawBytes:
		return formatted{}, badRequest("text is too long")
	case !utf8.ValidString(src.text):
		return formatted{}, badRequest("strings must be encoded in UTF-8")
	}
	f := formatted{text: src.text}
	var err error
	switch strings.ToLower(src.parseMode) {
	case "html":
		f, err = parseHTML(src.text)
	case "markdownv2":
		f, err = parseMarkdownV2(src.text)
	case "markdown":
		note("the simulator takes legacy Markdown for plain text")
	case "", "none":
		if src.entitiesErr != nil {
			return formatted{}, badRequest("can't parse entities JSON object")
		}
		f.entities, err = checkEntities(src)
	default:
		return formatted{}, badRequest("unsupported parse_mode")
	}
	if err != nil {
		return formatted{}, badRequest("can't parse entities: " + err.Error())
	}
	return f.clean(), nil
}

func checkEntities(src source) ([]Entity, error) {
	end := utf16Len(src.text)
	var out []Entity
	for _, e := range src.entities {
		switch {
		case e.Offset < 0 || e.Length < 0:
			return nil, parseError("entity has a negative offset or length")
		case e.Length == 0 || e.Offset >= end:
			continue
		}
		e.Length = min(e.Length, end-e.Offset)
		out = append(out, e)
	}
	return out, nil
}

// parseError is the text after "can't parse entities: ".
type parseError string

func (e parseError) Error() string { return string(e) }

func parseErrorf(format string, args ...any) error {
	return parseError(fmt.Sprintf(format, args...))
}

// clean removes carriage returns, replaces control characters by spaces, trims surrounding white space
// and adjusts the entities.
func (f formatted) clean() formatted {
	var kept strings.Builder
	var at []int // the new UTF-16 offset of each old one
	pos := 0
	for _, r := range f.text {
		for range utf16Len(string(r)) {
			at = append(at, pos)
		}
		switch {
		case r == '\r':
			continue
		case r < ' ' && r != '\n' || r == 0x7F:
			r = ' '
		}
		kept.WriteRune(r)
		pos += utf16Len(string(r))
	}
	at = append(at, pos)
	cleaned := kept.String()
	trimmed := strings.TrimLeft(cleaned, " \n\t\u00a0")
	shift := utf16Len(cleaned) - utf16Len(trimmed)
	trimmed = strings.TrimRight(trimmed, " \n\t\u00a0")
	end := utf16Len(trimmed)
	out := formatted{text: trimmed}
	for _, e := range f.entities {
		from := min(end, max(0, at[e.Offset]-shift))
		to := min(end, max(0, at[e.Offset+e.Length]-shift))
		if to > from {
			e.Offset, e.Length = from, to-from
			out.entities = append(out.entities, e)
		}
	}
	slices.SortStableFunc(out.entities, func(a, b Entity) int {
		return cmp.Or(a.Offset-b.Offset, b.Length-a.Length)
	})
	return out
}

// caption parses a caption and checks its length.
func (src source) caption(note func(string)) (formatted, *refusal) {
	f, refused := src.parse(note)
	if refused != nil {
		return formatted{}, refused
	}
	if utf8.RuneCountInString(f.text) > maxCaption {
		return formatted{}, badRequest("message caption is too long")
	}
	return f, nil
}

// message parses a message's text and checks its length.
func (src source) message(note func(string)) (formatted, *refusal) {
	if src.text == "" {
		return formatted{}, badRequest("message text is empty")
	}
	f, refused := src.parse(note)
	switch {
	case refused != nil:
		return formatted{}, refused
	case f.text == "":
		return formatted{}, badRequest("text must be non-empty")
	case utf8.RuneCountInString(f.text) > maxText:
		return formatted{}, badRequest("message is too long")
	}
	return f, nil
}

// marks returns the entities in the form of the log.
func (f formatted) marks() []sim.Mark {
	var out []sim.Mark
	for _, e := range f.entities {
		out = append(out, sim.Mark{Type: e.Type, From: e.Offset, Length: e.Length, URL: e.URL})
	}
	return out
}

// link returns the URL of a text link as the server stores it; "" if it rejects the URL. The text then has
// no link.
func link(raw string) string {
	raw = strings.TrimSpace(raw)
	if raw == "" || strings.ContainsAny(raw, " \n\t") {
		return ""
	}
	if !strings.Contains(raw, ":") || !strings.Contains(raw, "//") && !strings.HasPrefix(strings.ToLower(raw), "tg:") {
		raw = "http://" + raw
	}
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	switch u.Scheme {
	case "tg":
		return raw
	case "http", "https":
	default:
		return ""
	}
	if !strings.Contains(u.Hostname(), ".") {
		return ""
	}
	if u.Path == "" && !strings.HasSuffix(raw, "/") {
		u.Path = "/"
		return u.String()
	}
	return raw
}

// keyboard checks a reply_markup. It returns it unchanged, and its buttons.
func (a arguments) keyboard() (json.RawMessage, [][]sim.Button, *refusal) {
	type button struct {
		Text         string          `json:"text"`
		URL          string          `json:"url"`
		CallbackData string          `json:"callback_data"`
		WebApp       json.RawMessage `json:"web_app"`
		CopyText     json.RawMessage `json:"copy_text"`
		Switch       *string         `json:"switch_inline_query"`
		LoginURL     json.RawMessage `json:"login_url"`
	}
	var markup struct {
		Rows [][]button `json:"inline_keyboard"`
	}
	given, err := a.object("reply_markup", &markup)
	if err != nil {
		return nil, nil, badRequest("can't parse reply keyboard markup JSON object")
	}
	if !given {
		return nil, nil, nil
	}
	var rows [][]sim.Button
	for _, row := range markup.Rows {
		var out []sim.Button
		for _, b := range row {
			switch {
			case b.Text == "":
				return nil, nil, badRequest("can't parse inline keyboard button: Field \"text\" must be non-empty")
			case b.URL != "" && link(b.URL) == "":
				return nil, nil, badRequest("inline keyboard button URL '" + b.URL + "' is invalid: Wrong HTTP URL")
			case len(b.CallbackData) > 64:
				return nil, nil, badRequest("BUTTON_DATA_INVALID")
			case b.URL == "" && b.CallbackData == "" && b.WebApp == nil && b.CopyText == nil && b.Switch == nil && b.LoginURL == nil:
				return nil, nil, badRequest("can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard")
			}
			out = append(out, sim.Button{Text: b.Text, URL: b.URL, Data: b.CallbackData})
		}
		rows = append(rows, out)
	}
	return json.RawMessage(a.values["reply_markup"]), rows, nil
}

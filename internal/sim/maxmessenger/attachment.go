package maxmessenger

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"autopost/internal/sim"
)

const (
	maxText        = 4000 // UTF-16 units, markup included
	maxAttachments = 12
	maxButtons     = 210
	maxRows        = 30
	maxPerRow      = 7
	maxWidePerRow  = 3 // if the row has a wide button
	maxButtonURL   = 2048
	maxButtonText  = 128
	maxPayload     = 1024
)

// newMessage is the body of a send or an edit.
type newMessage struct {
	Text        *string              `json:"text"`
	Attachments *[]attachmentRequest `json:"attachments"`
	Link        *struct {
		Type string `json:"type"`
		Mid  string `json:"mid"`
	} `json:"link"`
	Notify *bool   `json:"notify"`
	Format *string `json:"format"`
}

type attachmentRequest struct {
	Type      string          `json:"type"`
	Payload   json.RawMessage `json:"payload"`
	Latitude  *float64        `json:"latitude"`
	Longitude *float64        `json:"longitude"`
}

// content is the content of a message.
type content struct {
	text        string
	marks       []sim.Mark
	media       []*medium
	attachments []map[string]any
	buttons     [][]sim.Button
	linked      bool
}

// strict decodes JSON and rejects unknown fields.
func strict(raw []byte, into any) *refusal {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return payload("Invalid request: " + strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return payload("Invalid request: data after the object")
	}
	return nil
}

// compose checks a message body and returns its content.
func (s *Server) compose(c call, body newMessage) (content, *refusal) {
	var out content
	raw := ""
	if body.Text != nil {
		raw = *body.Text
	}
	if n := utf16Len(raw); n > maxText {
		return out, payload("Field 'text' size (" + strconv.Itoa(n) + ") must be at most " + strconv.Itoa(maxText))
	}
	format := ""
	if body.Format != nil {
		format = *body.Format
	}
	switch {
	case format == "html":
		out.text, out.marks = parseHTML(raw)
	case format == "markdown":
		out.text, out.marks = parseMarkdown(raw)
	case body.Format != nil:
		return out, payload("Invalid enum value for field 'format': " + format)
	default:
		out.text = raw
	}
	if body.Link != nil {
		if body.Link.Type != "reply" && body.Link.Type != "forward" {
			return out, payload("Invalid enum value for field 'link.type': " + body.Link.Type)
		}
		if s.messages[body.Link.Mid] == nil {
			return out, notFound("Message " + body.Link.Mid + " not found")
		}
		out.linked = true
		if body.Link.Type == "reply" {
			c.log.ReplyTo = body.Link.Mid
		}
	}
	if body.Attachments != nil {
		if refused := s.attach(c, *body.Attachments, &out); refused != nil {
			return out, refused
		}
	}
	return out, nil
}

// attach checks each attachment, then their mix, then that all are ready.
func (s *Server) attach(c call, requests []attachmentRequest, out *content) *refusal {
	if len(requests) > maxAttachments {
		return payload("Field 'attachments' size (" + strconv.Itoa(len(requests)) + ") must be at most " + strconv.Itoa(maxAttachments))
	}
	count := map[string]int{}
	for _, r := range requests {
		count[r.Type]++
		shown, refused := s.attachOne(c, r, out)
		if refused != nil {
			return refused
		}
		out.attachments = append(out.attachments, shown)
	}
	content := len(requests) - count["inline_keyboard"]
	switch {
	case count["file"] > 0 && content > 1:
		return payload("Must be only one file attachment in message")
	case count["audio"] > 0 && content > 1:
		return payload("Must be only one audio attachment in message")
	case count["sticker"]+count["contact"] > 0 && len(requests) > 1:
		return payload("Attachment must be the only one in message")
	case count["inline_keyboard"] > 1:
		return payload("Must be only one inline_keyboard attachment in message")
	}
	for _, m := range out.media {
		if m.URL == "" && !m.ready() {
			return &refusal{
				status: http.StatusBadRequest, code: "attachment.not.ready",
				message: "Key: errors.process.attachment." + m.kind + ".not.processed",
			}
		}
	}
	return nil
}

func (s *Server) attachOne(c call, r attachmentRequest, out *content) (map[string]any, *refusal) {
	switch r.Type {
	case "image", "video", "audio", "file":
		return s.attachMedium(c, r, out)
	case "inline_keyboard":
		buttons, refused := keyboard(r.Payload)
		if refused != nil {
			return nil, refused
		}
		out.buttons = buttons
	case "location":
		if r.Latitude == nil || r.Longitude == nil {
			return nil, payload("Missing required parameter: latitude, longitude")
		}
		return map[string]any{"type": r.Type, "latitude": *r.Latitude, "longitude": *r.Longitude}, nil
	case "sticker", "contact", "share":
		if len(r.Payload) == 0 {
			return nil, payload("Missing required parameter: payload")
		}
	default:
		return nil, payload("Invalid attachment type: " + r.Type)
	}
	return map[string]any{"type": r.Type, "payload": r.Payload}, nil
}

// attachMedium resolves the tokens of an attachment. photos may have several.
func (s *Server) attachMedium(c call, r attachmentRequest, out *content) (map[string]any, *refusal) {
	type token struct {
		Token string `json:"token"`
	}
	var p struct {
		URL    *string          `json:"url"`
		Token  *string          `json:"token"`
		Photos map[string]token `json:"photos"`
	}
	if len(r.Payload) == 0 {
		return nil, payload("Missing required parameter: payload")
	}
	if refused := strict(r.Payload, &p); refused != nil {
		return nil, refused
	}
	given := 0
	for _, is := range []bool{p.URL != nil, p.Token != nil, len(p.Photos) > 0} {
		if is {
			given++
		}
	}
	switch {
	case given != 1:
		return nil, payload("Must be exactly one of url, token, photos in attachment payload")
	case r.Type != "image" && p.Token == nil:
		return nil, payload("Missing required parameter: token")
	case p.URL != nil:
		u, err := url.Parse(*p.URL)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, payload("Invalid photo url: " + *p.URL)
		}
		c.note("the simulator does not fetch pictures by URL")
		m := &medium{kind: "image", Media: sim.Media{Kind: "image", URL: *p.URL}}
		out.media = append(out.media, m)
		return map[string]any{"type": "image", "payload": map[string]any{"photo_id": 1, "url": *p.URL, "token": ""}}, nil
	}
	tokens := []string{}
	if p.Token != nil {
		tokens = append(tokens, *p.Token)
	}
	for _, key := range slices.Sorted(maps.Keys(p.Photos)) {
		tokens = append(tokens, p.Photos[key].Token)
	}
	var shown map[string]any
	for _, t := range tokens {
		m := s.media[t]
		if m == nil || m.kind != r.Type || m.bot != c.bot {
			return nil, payload("Invalid " + strings.Replace(r.Type, "image", "photo", 1) + " token provided: " + t)
		}
		out.media = append(out.media, m)
		shown = m.show(c.base)
	}
	return shown, nil
}

func (m *medium) show(base string) map[string]any {
	p := map[string]any{"token": m.token, "url": base + "/media/" + m.Digest}
	shown := map[string]any{"type": m.kind, "payload": p}
	switch m.kind {
	case "image":
		id := int64(0)
		for _, b := range []byte(m.Digest)[:min(8, len(m.Digest))] {
			id = id<<7 | int64(b)
		}
		p["photo_id"] = id
	case "file":
		shown["filename"], shown["size"] = m.Filename, m.Size
	}
	return shown
}

// described returns the media in the form of the log.
func (c content) described() []sim.Media {
	var out []sim.Media
	for _, m := range c.media {
		d := m.Media
		d.Uploaded, d.ID = false, m.token
		out = append(out, d)
	}
	return out
}

// button is a button of a request. The simulator does not check the fields that concern only clients.
type button struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	URL       string          `json:"url"`
	Payload   string          `json:"payload"`
	Quick     *bool           `json:"quick"`
	WebApp    string          `json:"web_app"`
	ContactID json.RawMessage `json:"contact_id"`
}

func keyboard(raw json.RawMessage) ([][]sim.Button, *refusal) {
	var p struct {
		Buttons [][]button `json:"buttons"`
	}
	if len(raw) == 0 {
		return nil, payload("Missing required parameter: payload")
	}
	if refused := strict(raw, &p); refused != nil {
		return nil, refused
	}
	if len(p.Buttons) == 0 {
		return nil, payload("Missing required parameter: buttons")
	}
	if len(p.Buttons) > maxRows {
		return nil, payload("errors.maxRows")
	}
	total := 0
	var rows [][]sim.Button
	for _, row := range p.Buttons {
		limit := maxPerRow
		var out []sim.Button
		for _, b := range row {
			if refused := b.check(); refused != nil {
				return nil, refused
			}
			if b.wide() {
				limit = maxWidePerRow
			}
			out = append(out, sim.Button{Text: b.Text, URL: b.URL, Data: b.Payload})
		}
		if len(row) == 0 || len(row) > limit {
			return nil, payload("errors.maxButtonsInRow")
		}
		total += len(row)
		rows = append(rows, out)
	}
	if total > maxButtons {
		return nil, payload("errors.maxButtons")
	}
	return rows, nil
}

// wide reports whether the button reduces the number of buttons in its row.
func (b button) wide() bool {
	return slices.Contains([]string{"link", "open_app", "request_geo_location", "request_contact"}, b.Type)
}

func (b button) check() *refusal {
	known := []string{"callback", "link", "request_contact", "request_geo_location", "open_app", "message", "clipboard"}
	if !slices.Contains(known, b.Type) {
		return payload("Invalid button type: " + b.Type)
	}
	if n := utf8.RuneCountInString(b.Text); n < 1 || n > maxButtonText {
		return payload("Field 'text' size (" + strconv.Itoa(n) + ") of a button must be from 1 to " + strconv.Itoa(maxButtonText))
	}
	if utf8.RuneCountInString(b.Payload) > maxPayload {
		return payload("Field 'payload' of a button must be at most " + strconv.Itoa(maxPayload))
	}
	if b.Type != "link" {
		return nil
	}
	u, err := url.Parse(b.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return payload("Must have only http/https links format in buttons")
	}
	if len(b.URL) > maxButtonURL {
		return payload("Field 'url' of a button must be at most " + strconv.Itoa(maxButtonURL))
	}
	return nil
}

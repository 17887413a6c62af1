package maxmessenger

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"image"
	_ "image/gif"  // sizes of uploaded pictures
	_ "image/jpeg" // sizes of uploaded pictures
	_ "image/png"  // sizes of uploaded pictures
	"io"
	"mime/multipart"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"autopost/internal/sim"
)

const (
	maxImageSide = 7680      // pixels
	imageHead    = 256 << 10 // bytes kept to read an image's size from
)

// kinds are the upload types, with their size limits in bytes and their file extensions. nil allows all
// but forbiddenExtensions.
var kinds = map[string]struct {
	size       int64
	extensions []string
}{
	"image": {50 << 20, []string{".jpg", ".jpeg", ".png", ".gif", ".tiff", ".bmp", ".heic"}},
	"video": {250 << 20, []string{".mp4", ".mov", ".mkv", ".webm"}},
	"audio": {256 << 20, []string{".mp3", ".wav", ".m4a", ".ogg", ".flac", ".aac"}},
	"file":  {4 << 30, nil},
}

var forbiddenExtensions = []string{".exe", ".bat", ".cmd", ".com", ".msi", ".scr"}

// slot is an upload URL for one file.
type slot struct {
	bot  *bot
	kind string
	used bool
	// token is the one in the answer with the slot; video and audio only.
	token string
}

// medium is the content behind an attachment token.
type medium struct {
	token string
	bot   *bot
	kind  string
	sim.Media
	// uploaded is false until the content is uploaded.
	uploaded bool
	readyAt  time.Time
	// refusals is the number of attempts to send it that still fail.
	refusals int
}

// ready reports whether the medium can be sent, and counts the attempt.
func (m *medium) ready() bool {
	if !m.uploaded || time.Now().Before(m.readyAt) {
		return false
	}
	if m.refusals > 0 {
		m.refusals--
		return false
	}
	return true
}

func (s *Server) openSlot(c call) (outcome, *refusal) {
	kind := c.query.Get("type")
	if _, ok := kinds[kind]; !ok {
		return outcome{}, payload("Invalid upload type: " + kind)
	}
	if len(c.body) > 0 {
		c.note("the body is ignored")
	}
	s.serial++
	sl := &slot{bot: c.bot, kind: kind}
	id := fmt.Sprintf("%x-%s", s.serial, sim.CredentialHash(c.bot.token))
	s.slots[id] = sl
	answer := map[string]any{"url": c.base + "/upload/" + kind + "/" + id + "?sig=" + signature(id)}
	if kind == "video" || kind == "audio" {
		sl.token = s.newToken(kind)
		s.media[sl.token] = &medium{token: sl.token, bot: c.bot, kind: kind}
		answer["token"] = sl.token
	}
	return outcome{body: answer}, nil
}

// signature returns the signature of an upload URL, which must be used unchanged.
func signature(id string) string { return sim.Digest([]byte("sig " + id))[:16] }

// newToken returns an opaque attachment token.
func (s *Server) newToken(kind string) string {
	s.serial++
	return "f9LH" + sim.Digest(fmt.Appendf(nil, "%s %d %d", kind, s.serial, time.Now().UnixNano()))[:40]
}

// serveUpload serves the upload hosts.
func (s *Server) serveUpload(w http.ResponseWriter, r *http.Request) {
	kind, id, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/upload/"), "/")
	s.mu.Lock()
	sl := s.slots[id]
	s.mu.Unlock()
	entry := sim.Entry{Platform: Platform, Method: "upload " + kind}
	if sl != nil {
		entry.Credential = sim.CredentialHash(sl.bot.token)
	}
	x := s.core.Begin(w, r, entry)
	if x.Cut() {
		return
	}
	if r.Header.Get("Authorization") != "" {
		x.Note("the token was sent to the upload host")
	}
	if r.ContentLength < 0 {
		x.Note("the upload has no Content-Length")
	}
	var up *received
	refused := checkSlot(r, sl, kind, id)
	if refused == nil {
		up, refused = receive(r, x, kind)
	}
	if up != nil {
		x.Entry().Media = []sim.Media{up.Media}
	}
	x.Arrive()
	x.Answer(func() sim.Reply {
		if refused != nil {
			return refuse(*refused)
		}
		return s.keep(sl, up)
	}, refuseFault)
}

func checkSlot(r *http.Request, sl *slot, kind, id string) *refusal {
	switch {
	case r.Method != http.MethodPost:
		return &refusal{status: http.StatusMethodNotAllowed, code: "method.not.allowed", message: "Method not allowed"}
	case sl == nil || sl.kind != kind || r.URL.Query().Get("sig") != signature(id):
		return notFound("Unknown upload URL")
	}
	return nil
}

// received is the content of an upload.
type received struct {
	sim.Media
	width, height int
}

// receive reads the multipart body. It computes the digest and the size of its only file and does not store
// the content.
func receive(r *http.Request, x *sim.Exchange, kind string) (*received, *refusal) {
	_, boundary, ok := strings.Cut(r.Header.Get("Content-Type"), "boundary=")
	if !ok || !strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/form-data") {
		return nil, payload("multipart/form-data expected")
	}
	reader := multipart.NewReader(x.Body(), strings.Trim(boundary, `"`))
	part, err := reader.NextRawPart()
	if err != nil || part.FormName() != "data" || part.FileName() == "" {
		return nil, payload("File part 'data' with a filename expected")
	}
	up := &received{Media: sim.Media{Kind: kind, Filename: part.FileName(), Uploaded: true}}
	digest := sha256.New()
	head, err := io.ReadAll(io.TeeReader(io.LimitReader(part, imageHead), digest))
	if err != nil {
		return nil, payload("Cannot read the upload")
	}
	rest, err := io.Copy(digest, part)
	if err != nil {
		return nil, payload("Cannot read the upload")
	}
	up.Size, up.Digest = int64(len(head))+rest, hex.EncodeToString(digest.Sum(nil))
	if _, err := reader.NextRawPart(); !errors.Is(err, io.EOF) {
		return up, payload("One file per upload URL expected")
	}
	if config, _, err := image.DecodeConfig(bytes.NewReader(head)); err == nil {
		up.width, up.height = config.Width, config.Height
	}
	return up, up.check(kind)
}

func (up *received) check(kind string) *refusal {
	limits := kinds[kind]
	extension := strings.ToLower(path.Ext(up.Filename))
	switch {
	case up.Size == 0:
		return payload("Empty file")
	case up.Size > limits.size:
		return &refusal{status: http.StatusRequestEntityTooLarge, code: "proto.payload", message: "File is too large"}
	case limits.extensions != nil && !slices.Contains(limits.extensions, extension),
		slices.Contains(forbiddenExtensions, extension):
		return &refusal{status: http.StatusUnsupportedMediaType, code: "proto.payload", message: "File extension is forbidden"}
	case kind == "image" && max(up.width, up.height) > maxImageSide:
		return payload("Image dimensions are too large")
	}
	return nil
}

// keep stores an upload and answers with its token, unless that is the slot's.
func (s *Server) keep(sl *slot, up *received) sim.Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sl.used {
		return refuse(*payload("Upload URL has been used already"))
	}
	sl.used = true
	m := &medium{
		token: sl.token, bot: sl.bot, kind: sl.kind, Media: up.Media, uploaded: true,
		readyAt: time.Now().Add(s.processing.Delay), refusals: s.processing.Attempts,
	}
	if m.token == "" {
		m.token = s.newToken(sl.kind)
	}
	s.media[m.token] = m
	reply := sim.Reply{Status: http.StatusOK, ContentType: "application/json;charset=utf-8", Accepted: true}
	switch sl.kind {
	case "image":
		key := up.Digest[:16]
		reply.Body = encode(map[string]any{"photos": map[string]any{key: map[string]any{"token": m.token}}})
	case "file":
		s.serial++
		reply.Body = encode(map[string]any{"fileId": s.serial, "token": m.token})
	default:
		reply.ContentType = "application/xml;charset=utf-8"
		reply.Body = []byte(`<?xml version="1.0" encoding="UTF-8" standalone="no"?><retval>1</retval>`)
	}
	return reply
}

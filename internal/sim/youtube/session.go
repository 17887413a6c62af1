package youtube

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
	"mime"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"autopost/internal/sim"
)

const (
	sessionLife = 7 * 24 * time.Hour
	blockSize   = 256 << 10 // bytes; every request except the last has a multiple of it
	maxVideo    = 256 << 30 // bytes
	headSize    = 512
)

// session is a resumable upload.
type session struct {
	id       string
	project  *project
	channel  *channel
	meta     metadata
	parts    []string
	total    int64 // -1 if unknown
	received int64
	sum      hash.Hash
	head     []byte
	expires  time.Time
	gone     bool // an expired session answers 410 instead of 404
	// busy is closed at the end of the running request; nil without one.
	busy  chan struct{}
	video *video
	// notify reports that subscribers are notified of the video.
	notify bool
}

func (s *Server) startSession(c *call) (outcome, *refusal) {
	parts, refused := c.parts()
	if refused != nil {
		return outcome{}, refused
	}
	if kind := c.query.Get("uploadType"); kind != "resumable" {
		return outcome{}, wrong("badRequest", "The simulator takes uploadType=resumable only, not '"+kind+"'.", "uploadType")
	}
	u := &session{
		id: "AEnB2U" + s.newName("session", 40), project: c.token.project, channel: c.token.channel, parts: parts, total: -1,
		sum: sha256.New(), expires: time.Now().Add(s.core.Pace.Of(sessionLife)),
	}
	if refused := c.announced(u); refused != nil {
		return outcome{}, refused
	}
	if refused := c.decode(&u.meta); refused != nil {
		return outcome{}, refused
	}
	c.log.Title, c.log.Text = u.meta.Snippet.title(), u.meta.Snippet.description()
	if refused := u.meta.validate(parts); refused != nil {
		return outcome{}, refused
	}
	if refused := s.countUpload(u.channel); refused != nil {
		return outcome{}, refused
	}
	u.notify = c.query.Get("notifySubscribers") != "false"
	s.sessions[u.id] = u
	query := c.query
	query.Set("upload_id", u.id)
	return outcome{header: http.Header{"Location": {base(c.r) + uploadPath + "?" + query.Encode()}}}, nil
}

// announced reads the type and the size of the content from the headers.
func (c *call) announced(u *session) *refusal {
	kind, _, err := mime.ParseMediaType(c.r.Header.Get("X-Upload-Content-Type"))
	if err != nil || !strings.HasPrefix(kind, "video/") && kind != "application/octet-stream" {
		return wrong("badRequest", "Media type '"+c.r.Header.Get("X-Upload-Content-Type")+"' is not supported. Valid media types: [video/*, application/octet-stream]", "")
	}
	given := c.r.Header.Get("X-Upload-Content-Length")
	if given == "" {
		return nil
	}
	total, err := strconv.ParseInt(given, 10, 64)
	switch {
	case err != nil || total <= 0:
		return because("mediaBodyRequired")
	case total > maxVideo:
		return because("uploadTooLarge")
	}
	u.total = total
	return nil
}

// contentRange is the Content-Range of a request of a session.
type contentRange struct {
	probe    bool
	whole    bool // no header: the whole content
	from, to int64
	total    int64 // -1 if unknown
}

var (
	rangeForm = regexp.MustCompile(`^bytes (\d+)-(\d+)/(\d+|\*)$`)
	probeForm = regexp.MustCompile(`^bytes \*/(\d+|\*)$`)
)

func readRange(r *http.Request) (contentRange, bool) {
	header := r.Header.Get("Content-Range")
	number := func(text string) int64 {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return -1
		}
		return n
	}
	if header == "" {
		return contentRange{whole: true, to: r.ContentLength - 1, total: r.ContentLength}, true
	}
	if m := probeForm.FindStringSubmatch(header); m != nil {
		return contentRange{probe: true, total: number(m[1])}, true
	}
	m := rangeForm.FindStringSubmatch(header)
	if m == nil {
		return contentRange{}, false
	}
	got := contentRange{from: number(m[1]), to: number(m[2]), total: number(m[3])}
	return got, got.from >= 0 && got.to >= got.from && (got.total < 0 || got.to < got.total)
}

func (c contentRange) last() bool { return c.whole || !c.probe && c.total >= 0 && c.to == c.total-1 }

// intake receives the bytes of one request. Commit adds them to the session: whole blocks, and the rest
// of a complete request.
type intake struct {
	io.ReadCloser
	session *session
	sum     hash.Hash
	head    []byte
	block   []byte
	taken   int64
	most    int64 // 0 for all
	full    bool
	arrived int64
}

func (s *Server) newIntake(u *session, body io.ReadCloser) *intake {
	in := &intake{ReadCloser: body, session: u, head: bytes.Clone(u.head), most: s.most}
	in.sum = cloned(u.sum)
	return in
}

func cloned(sum hash.Hash) hash.Hash {
	cloner, ok := sum.(hash.Cloner)
	if !ok {
		panic("youtube simulator: SHA-256 cannot be cloned")
	}
	copied, err := cloner.Clone()
	if err != nil {
		panic("youtube simulator: " + err.Error())
	}
	return copied
}

// Read reads the body and keeps its bytes up to the limit.
func (in *intake) Read(p []byte) (int, error) {
	n, err := in.ReadCloser.Read(p)
	in.arrived += int64(n)
	for rest := p[:n]; len(rest) > 0 && !in.full; {
		part := rest[:min(len(rest), blockSize-len(in.block))]
		in.block = append(in.block, part...)
		rest = rest[len(part):]
		if len(in.block) == blockSize {
			in.flush()
			in.full = in.most > 0 && in.taken >= in.most
		}
	}
	return n, err
}

func (in *intake) flush() {
	in.head = append(in.head, in.block[:min(len(in.block), headSize-len(in.head))]...)
	_, _ = in.sum.Write(in.block) // a hash never fails
	in.taken += int64(len(in.block))
	in.block = in.block[:0]
}

// commit adds the received bytes to the session.
func (in *intake) commit() {
	in.session.sum, in.session.head = in.sum, in.head
	in.session.received += in.taken
}

// serveSession answers a request of a session.
func (s *Server) serveSession(w http.ResponseWriter, r *http.Request) {
	entry := s.described(r, "PUT "+uploadPath)
	brings, ranged := readRange(r)
	u := s.lockSession(r)
	var in *intake
	if u != nil && u.busy == nil && u.video == nil && ranged && !brings.probe && brings.from == u.received {
		in = s.newIntake(u, r.Body)
		u.busy = make(chan struct{})
		r.Body = in
	}
	if u != nil {
		entry.Chat, entry.ChatTitle, entry.Title = u.channel.ID, u.channel.Title, u.meta.Snippet.title()
	}
	if u != nil && brings.last() {
		entry.Items, entry.Text = 1, u.meta.Snippet.description()
	}
	s.mu.Unlock()
	defer s.release(in)
	x := s.core.Begin(w, r, entry)
	if x.Cut() {
		s.keep(in)
		return
	}
	_, err := io.Copy(io.Discard, x.Body())
	if r.Header.Get("Authorization") == "" {
		x.Note("the request has no Authorization")
	}
	x.Arrive()
	if err != nil {
		s.keep(in)
	}
	x.Answer(func() sim.Reply {
		s.mu.Lock()
		defer s.mu.Unlock()
		switch {
		case err != nil:
			return refuse(wrong("badRequest", "The body ended early.", ""))
		case r.Method != http.MethodPut && r.Method != http.MethodPost:
			return refuse(because("httpMethodNotAllowed"))
		case !ranged:
			return refuse(wrong("invalidContentRange", "Failed to parse Content-Range header.", ""))
		}
		return s.takePart(r, u, in, brings, x.Entry())
	}, refuseFault)
}

// lockSession locks the server and finds the session of a request; nil if there is none. It serves one
// request after the other: a status request after a broken connection sees all received bytes.
func (s *Server) lockSession(r *http.Request) *session {
	for {
		s.mu.Lock()
		u := s.sessions[r.URL.Query().Get("upload_id")]
		if u == nil || u.busy == nil || r.Context().Err() != nil {
			return u
		}
		busy := u.busy
		s.mu.Unlock()
		select {
		case <-busy:
		case <-r.Context().Done():
		}
	}
}

func (s *Server) keep(in *intake) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if in != nil {
		in.commit()
	}
}

func (s *Server) release(in *intake) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if in != nil {
		close(in.session.busy)
		in.session.busy = nil
	}
}

// takePart checks a request of a session and keeps its bytes.
func (s *Server) takePart(r *http.Request, u *session, in *intake, brings contentRange, log *sim.Entry) sim.Reply {
	if u == nil || !time.Now().Before(u.expires) {
		if u != nil && u.gone {
			return refuse(because("uploadSessionGone"))
		}
		return refuse(because("notFound"))
	}
	if header := r.Header.Get("Authorization"); header != "" {
		t, refused := s.authenticate(header, uploading)
		if refused != nil {
			return refuse(refused)
		}
		if t.channel != u.channel {
			return refuse(because("forbidden"))
		}
	}
	switch {
	case u.video != nil:
		return s.uploaded(u)
	case brings.total >= 0 && u.total >= 0 && brings.total != u.total:
		return refuse(wrong("invalidContentRange", "The total length differs from the one announced.", ""))
	case brings.probe:
		return u.incomplete(r)
	case in == nil:
		return refuse(wrong("invalidContentRange", "The range begins at "+strconv.FormatInt(brings.from, 10)+", expected "+strconv.FormatInt(u.received, 10)+".", ""))
	case in.arrived == 0:
		return refuse(because("mediaBodyRequired"))
	case !brings.whole && in.arrived != brings.to-brings.from+1:
		return refuse(wrong("invalidContentRange", "The body is not as long as its range.", ""))
	case !brings.last() && in.arrived%blockSize != 0:
		return refuse(wrong("badRequest", "Invalid request. The number of bytes uploaded is required to be a multiple of 262144, except for the final request.", ""))
	}
	if !in.full {
		in.flush()
	}
	in.commit()
	if !brings.last() || u.received < brings.from+in.arrived {
		return u.incomplete(r)
	}
	s.complete(u, log)
	return s.uploaded(u)
}

// incomplete answers with the received range.
func (u *session) incomplete(r *http.Request) sim.Reply {
	reply := sim.Reply{Status: http.StatusPermanentRedirect, Header: http.Header{}, Accepted: true}
	if u.received > 0 {
		reply.Header.Set("Range", "bytes=0-"+strconv.FormatInt(u.received-1, 10))
	}
	if r.Header.Get("X-GUploader-No-308") == "yes" {
		reply.Status = http.StatusOK
		reply.Header.Set("X-HTTP-Status-Code-Override", "308")
	}
	return reply
}

// complete creates the video of a session.
func (s *Server) complete(u *session, log *sim.Entry) {
	u.video = s.newVideo(u, sim.Media{Kind: "video", Digest: hex.EncodeToString(u.sum.Sum(nil)), Size: u.received})
	log.Media = []sim.Media{u.video.media}
	log.Media[0].Uploaded = true
	log.Badges = u.video.badges()
	log.TextDigest = sim.Digest([]byte(u.meta.Snippet.description()))
}

func (s *Server) uploaded(u *session) sim.Reply {
	reply := sim.Reply{
		Status: http.StatusOK, ContentType: "application/json; charset=UTF-8", Accepted: true, Body: encode(u.video.show(u.parts, true)),
	}
	if !u.video.answered {
		reply.MessageIDs = []string{u.video.id}
		u.video.answered = true
	}
	return reply
}

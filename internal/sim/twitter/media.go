package twitter

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"autopost/internal/sim"
)

const (
	mediaLife  = 24 * time.Hour // after finalize; also of an unfinished upload
	maxAltText = 1000           // characters
)

// category has X's rules for one kind of medium.
type category struct {
	class string
	types []string
	size  int64
	// slow media are processed after the upload.
	slow bool
}

var categories = map[string]category{
	"tweet_image":   {"photo", []string{"image/jpeg", "image/png", "image/gif", "image/webp", "image/bmp", "image/tiff", "image/pjpeg"}, 5 << 20, false},
	"tweet_gif":     {"animated_gif", []string{"image/gif"}, 15 << 20, true},
	"tweet_video":   {"video", []string{"video/mp4", "video/quicktime", "video/webm", "video/mp2t"}, 512 << 20, true},
	"amplify_video": {"video", []string{"video/mp4", "video/quicktime", "video/webm", "video/mp2t"}, 512 << 20, true},
}

type processingState string

const (
	statePending    processingState = "pending"
	stateInProgress processingState = "in_progress"
	stateSucceeded  processingState = "succeeded"
	stateFailed     processingState = "failed"
)

// medium is an upload. After finalize it can be posted.
type medium struct {
	id        string
	owner     *user
	shared    []string // ids of other users who may post it
	category  string
	mediaType string
	total     int64
	chunks    chunks
	expires   time.Time
	finalized bool
	// began and ready bound the processing; failure is its error.
	began, ready time.Time
	failure      string
	altText      string
}

func (m *medium) class() string { return categories[m.category].class }

func (m *medium) key() string {
	return map[string]string{"photo": "3_", "animated_gif": "16_", "video": "13_"}[m.class()] + m.id
}

func (m *medium) expired() bool { return !time.Now().Before(m.expires) }

func (m *medium) ownedBy(u *user) bool { return m.owner == u || slices.Contains(m.shared, u.ID) }

func (m *medium) described() sim.Media {
	return sim.Media{Kind: m.class(), ID: m.id, Digest: m.chunks.digest(), Size: m.chunks.size, Caption: m.altText}
}

func (m *medium) state() processingState {
	now := time.Now()
	switch {
	case now.Before(m.began.Add(m.ready.Sub(m.began) / 4)):
		return statePending
	case now.Before(m.ready):
		return stateInProgress
	case m.failure != "":
		return stateFailed
	}
	return stateSucceeded
}

// info is the processing_info of an answer; nil without processing.
func (m *medium) info() map[string]any {
	if !categories[m.category].slow || m.ready.Equal(m.began) && m.failure == "" {
		return nil
	}
	state, left := m.state(), time.Until(m.ready)
	info := map[string]any{"state": state}
	switch state {
	case statePending, stateInProgress:
		info["check_after_secs"] = max(1, int(left.Seconds()/2))
		info["progress_percent"] = int(100 * (1 - left.Seconds()/m.ready.Sub(m.began).Seconds()))
	case stateSucceeded:
		info["progress_percent"] = 100
	case stateFailed:
		info["error"] = map[string]any{"code": 1, "name": "InvalidMedia", "message": m.failure}
	}
	return info
}

func (m *medium) show() map[string]any {
	data := map[string]any{"id": m.id, "media_key": m.key(), "size": m.chunks.size, "expires_after_secs": int(time.Until(m.expires).Seconds())}
	if info := m.info(); info != nil {
		data["processing_info"] = info
	}
	return map[string]any{"data": data}
}

// settled starts the processing of a complete upload.
func (s *Server) settled(m *medium) *problem {
	c := categories[m.category]
	if message := unlike(m.mediaType, m.chunks.head); message != "" {
		if !c.slow {
			return invalid(message, "media_type", m.mediaType)
		}
		m.failure = message
	}
	m.finalized, m.began, m.ready = true, time.Now(), time.Now()
	if c.slow {
		m.ready = m.began.Add(s.core.Pace.Of(s.processing))
	}
	m.expires = m.began.Add(s.core.Pace.Of(mediaLife))
	return nil
}

// unlike returns an error text if the first bytes do not match the type; "" otherwise.
func unlike(mediaType string, head []byte) string {
	like := true
	switch mediaType {
	case "image/jpeg", "image/pjpeg":
		like = http.DetectContentType(head) == "image/jpeg"
	case "image/png", "image/gif", "image/webp", "image/bmp":
		like = http.DetectContentType(head) == mediaType
	case "video/mp4", "video/quicktime":
		like = len(head) >= 8 && bytes.Contains([]byte("ftyp moov mdat wide free"), head[4:8])
	case "video/webm":
		like = bytes.HasPrefix(head, []byte("\x1a\x45\xdf\xa3"))
	case "video/mp2t":
		like = bytes.HasPrefix(head, []byte{0x47})
	}
	if like {
		return ""
	}
	return "The content is not of the type " + mediaType + "."
}

// fits checks the category, the type and the size of a medium.
func fits(kind, mediaType string, size int64) *problem {
	c, known := categories[kind]
	switch {
	case !known:
		return invalid("$.media_category: does not have a value in the enumeration", "media_category", kind)
	case !slices.Contains(c.types, mediaType):
		return invalid(fmt.Sprintf("$.media_type: %s is not one of [%s]", mediaType, strings.Join(c.types, ", ")), "media_type", mediaType)
	case size <= 0:
		return invalid("$.total_bytes: must be at least 1", "total_bytes")
	case size > c.size:
		return invalid(fmt.Sprintf("File size exceeds %d bytes.", c.size), "total_bytes", fmt.Sprint(size))
	}
	return nil
}

// ExpireMedia expires all present media ids.
func (s *Server) ExpireMedia() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.media {
		m.expires = time.Now()
	}
}

// own finds an upload or medium of the caller.
func (s *Server) own(c *call, id string) (*medium, *problem) {
	m := s.media[id]
	if m == nil || !m.ownedBy(c.user) || m.expired() {
		c.note("no such media of this user, or it has expired")
		return nil, named("not-found")
	}
	return m, nil
}

func (s *Server) uploadStatus(c *call) (outcome, *problem) {
	if c.query.Get("command") != "STATUS" {
		return outcome{}, invalid("The `command` query parameter value ["+c.query.Get("command")+"] is not one of [STATUS]", "command", c.query["command"]...)
	}
	m, refused := s.own(c, c.query.Get("media_id"))
	if refused != nil {
		return outcome{}, refused
	}
	if !m.finalized {
		return outcome{}, invalid("The upload is not finalized.", "media_id", m.id)
	}
	return outcome{body: m.show()}, nil
}

// metadata sets the alternative text of a medium.
func (s *Server) metadata(c *call) (outcome, *problem) {
	var body struct {
		ID       string `json:"id"`
		Metadata struct {
			AltText *struct {
				Text string `json:"text"`
			} `json:"alt_text"`
		} `json:"metadata"`
	}
	if refused := c.decode(&body); refused != nil {
		return outcome{}, refused
	}
	m, refused := s.own(c, body.ID)
	if refused != nil {
		return outcome{}, refused
	}
	alt := body.Metadata.AltText
	switch {
	case alt == nil || alt.Text == "":
		return outcome{}, invalid("$.metadata.alt_text.text: is missing but it is required", "metadata.alt_text.text")
	case len([]rune(alt.Text)) > maxAltText:
		return outcome{}, invalid("$.metadata.alt_text.text: must be at most 1000 characters long", "metadata.alt_text.text", alt.Text)
	case m.class() == "video":
		return outcome{}, invalid("Alternative texts are for images and animations.", "id", m.id)
	}
	m.altText = alt.Text
	c.log.Media = []sim.Media{m.described()}
	s.charge(c, "media metadata", PriceMetadata)
	return outcome{body: map[string]any{"data": map[string]any{
		"id": m.id, "associated_metadata": map[string]any{"alt_text": map[string]any{"text": m.altText}},
	}}}, nil
}
